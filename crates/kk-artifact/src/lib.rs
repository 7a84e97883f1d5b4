//! kk-artifact
