//! One executable for all integration tests of this crate, so that its dependencies are linked once.
//!
//! The operator on a real API server, and what hooks get: the shell library, examples and jq.

mod cluster;
mod example_hooks;
mod jq_corpus;
mod shell_lib;
