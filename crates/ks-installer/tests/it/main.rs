//! One executable for all integration tests of this crate, so that its dependencies are linked once.
//!
//! Payloads on a real API server, and definitions against real releases.

mod cluster;
#[path = "../../../shell-operator/tests/it/cluster/programs.rs"]
mod programs;
mod release;
