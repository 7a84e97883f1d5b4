//! One executable for all integration tests of this crate, so that its dependencies are linked once.
//!
//! Plans, probes, actions and runs, on hosts that really run their scripts.

mod actions;
mod lib_sh;
mod plan;
mod probe;
mod runner;
