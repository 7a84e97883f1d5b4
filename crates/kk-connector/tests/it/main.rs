//! One executable for all integration tests of this crate, so that its dependencies are linked once.
//!
//! Connections to hosts: this machine, and a real sshd on loopback.

mod local;
mod ssh;
