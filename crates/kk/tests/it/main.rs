//! One executable for all integration tests of this crate, so that its dependencies are linked once.
//!
//! The program `kk`, its pages and what it prints.

mod docs;
mod help;
mod hosts;
mod program;
mod recorded;
mod rendering;
