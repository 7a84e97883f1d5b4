//! Contains all integration tests of this crate in one executable, so that its dependencies are linked once.
//!
//! They test payloads on a real API server, and definitions with real releases.

mod cluster;
#[path = "../../../shell-operator/tests/it/cluster/programs.rs"]
mod programs;
mod release;
