//! Actions that every module can use.
