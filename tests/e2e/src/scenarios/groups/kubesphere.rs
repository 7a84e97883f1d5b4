//! The group `kubesphere`.

use super::super::{HELM, kubesphere};
use super::capability;
use crate::selection::When;
use crate::suite::{Group, Scenario};

pub(super) const GROUP: Group = Group {
    name: "kubesphere",
    when: When::InTurn,
    chains: &[
        &[
            Scenario::new(
                "kubesphere-toggle",
                "a component is switched off and on again; nothing of it is left, and nothing else is touched",
                210,
                20,
                kubesphere::toggle::run,
            )
            .needs(HELM)
            .covers(&[
                capability!("kubesphere"),
                "crates/ks-installer/",
                "crates/kk-cluster/src/base/supply/installer.rs",
            ]),
        ],
        &[
            Scenario::new(
                "kubesphere-remove",
                "KubeSphere's stand-ins come into a cluster and go again: the whole API is as before",
                195,
                20,
                kubesphere::remove::run,
            )
            .needs(HELM)
            .covers(&[
                capability!("kubesphere"),
                "crates/ks-installer/",
                "crates/kk-cluster/src/base/supply/installer.rs",
                "tests/lab/ks-payload/",
            ]),
        ],
        &[
            Scenario::new(
                "kubesphere-faults",
                "what goes wrong with the installer is named and healed; its pod is killed at thirty random moments",
                400,
                20,
                kubesphere::faults::run,
            )
            .needs(HELM)
            .covers(&[
                capability!("kubesphere"),
                "crates/ks-installer/",
                "crates/kk-cluster/src/base/supply/installer.rs",
            ]),
        ],
    ],
};
