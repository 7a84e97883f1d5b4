//! One executable for all integration tests of this crate, so that its dependencies are linked once.
//!
//! Plans, probes, actions and runs, on hosts that run their scripts with a real shell.

mod actions;
mod lib_sh;
mod plan;
mod probe;
mod runner;
