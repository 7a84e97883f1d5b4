//! The group `kills`.

use super::super::{kill, kill_anywhere, restore};
use super::capability;
use crate::selection::When;
use crate::suite::{Group, Scenario};

pub(super) const GROUP: Group = Group {
    name: "kills",
    when: When::InTurn,
    chains: &[
        &[Scenario::new(
            "kill",
            "kk killed in the middle of etcd, init and join: the next create makes the same cluster",
            330,
            12,
            kill::run,
        )
        .covers(&[
            capability!("etcd"),
            capability!("control_plane"),
            capability!("nodes"),
            "crates/kk-cluster/src/base/questions/began.rs",
            "crates/kk-cluster/src/base/questions/began.sh",
        ])],
        &[Scenario::new(
            "kill-anywhere/some",
            "kk killed at four random moments inside init and join: the next create makes the same cluster",
            340,
            15,
            kill_anywhere::run_some,
        )
        .covers(&[
            capability!("control_plane"),
            capability!("nodes"),
            "crates/kk-cluster/src/base/token.rs",
        ])],
        &[Scenario::new(
            "restore",
            "etcd that has lost all its data comes back from a snapshot, also when the restore is killed",
            320,
            15,
            restore::run,
        )
        .covers(&[capability!("etcd_restore")])],
    ],
};
