//! One executable for all integration tests of this crate, so that its dependencies are linked once.
//!
//! The binary `kk`, its documentation and its output.

mod docs;
mod help;
mod hosts;
mod program;
mod recorded;
mod rendering;
