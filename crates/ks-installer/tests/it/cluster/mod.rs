//! Tests with a real API server, which is started as in the tests of shell-operator.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod audit;
mod certificates;
mod charts;
#[expect(dead_code, reason = "tests of shell-operator need more of it")]
#[path = "../../../../shell-operator/tests/it/cluster/control_plane.rs"]
mod control_plane;
mod etcd;
mod extensions;
mod faults;
mod helm;
mod kill;
mod lab;
mod lifecycle;
mod operator;
mod ownership;
mod removal;
mod take_over;
mod whole;

use crate::programs;
