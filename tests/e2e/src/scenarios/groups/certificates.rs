//! The group `certificates`.

use super::super::{auto_renew, certificates, rotate_ca};
use super::capability;
use crate::selection::When;
use crate::suite::{Group, Scenario};

pub(super) const GROUP: Group = Group {
    name: "certificates",
    when: When::InTurn,
    chains: &[
        &[
            Scenario::new(
                "rotate-ca",
                "three control planes get other CAs by runs that are killed in each round; the API refuses no client that knows it",
                640,
                20,
                rotate_ca::run,
            )
            .covers(&[
                capability!("ca_rotation"),
                "crates/kk-cluster/src/base/pki/",
                "crates/kk-cluster/src/base/questions/ca_rotation.rs",
            ]),
        ],
        &[
            Scenario::new(
                "certificates",
                "certificates that end before long are named; when all have expired, one create repairs the cluster",
                160,
                12,
                certificates::run,
            )
            .covers(&["crates/kk-cluster/src/base/certificates/", "crates/kk-cluster/src/base/kubeconfig/"]),
        ],
        &[
            Scenario::new(
                "auto-renew",
                "timers on three control planes renew certificates that end, one after the other",
                270,
                12,
                auto_renew::run,
            )
            .covers(&[capability!("auto_renew")]),
        ],
    ],
};
