//! Tests against a real API server.
//!
//! The harness starts etcd, kube-apiserver and kube-controller-manager as plain processes on free loopback ports with their own
//! certificates; no root is needed. All tests except the tests of faults share one cluster.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod client;
mod commands;
mod control_plane;
mod faults;
mod hooks;
mod leader;
mod library;
mod metadata;
mod operator;
mod orphans;
mod programs;
mod proxy;
mod recorded;
mod reload;
mod shapes;
mod snapshots;
mod webhooks;
