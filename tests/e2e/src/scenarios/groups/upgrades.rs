//! The group `upgrades`.

use super::super::{BOTH, FROM, TO, kubesphere, upgrade};
use super::capability;
use crate::selection::When;
use crate::suite::{Group, Scenario};

pub(super) const GROUP: Group = Group {
    name: "upgrades",
    when: When::InTurn,
    chains: &[
        &[
            Scenario::new(
                "upgrade-ha",
                "three control planes behind a load balancer get the next minor version, and the API answers all the while",
                350,
                25,
                upgrade::ha::run,
            )
            .needs(BOTH)
            .covers(&["crates/kk/src/commands/upgrade.rs", "crates/kk-cluster/src/base/rollout.rs"]),
        ],
        &[
            Scenario::new(
                "upgrade-fails",
                "a node whose kubelet does not start at the new version is put back, and no other is begun",
                320,
                35,
                upgrade::fails::run,
            )
            .needs(BOTH)
            .covers(&["crates/kk/src/commands/upgrade.rs"]),
        ],
        &[
            Scenario::new(
                "kubesphere-upgrade",
                "an upgrade that asks for KubeSphere ends with it, when the last node has its version",
                250,
                20,
                kubesphere::upgrade::run,
            )
            .needs(&["--kubernetes", FROM, "--kubernetes", TO, "--with", "helm"])
            .covers(&[capability!("kubesphere")]),
        ],
    ],
};
