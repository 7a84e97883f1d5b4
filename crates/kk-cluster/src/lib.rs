//! kk-cluster
