//! One executable for all integration tests of this crate, so that its dependencies are linked once.
//!
//! Cluster files and Manifests, as a user gets them read.

mod bad_input;
mod damaged_input;
mod good_input;
mod manifests;
mod mistakes;
