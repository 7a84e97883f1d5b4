//! kk-engine
