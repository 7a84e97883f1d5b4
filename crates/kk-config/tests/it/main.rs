//! One executable for all integration tests of this crate, so that its dependencies are linked once.
//!
//! Loads Cluster files and Manifests like a user.

mod bad_input;
mod damaged_input;
mod good_input;
mod kubekey_files;
mod manifests;
mod mistakes;
