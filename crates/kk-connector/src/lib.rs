//! kk-connector
