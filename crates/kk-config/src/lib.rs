//! kk-config
