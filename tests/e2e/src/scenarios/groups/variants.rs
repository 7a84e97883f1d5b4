//! The group `variants`.

use super::super::variants;
use super::capability;
use crate::selection::When;
use crate::suite::{Group, Scenario};

pub(super) const GROUP: Group = Group {
    name: "variants",
    when: When::InTurn,
    chains: &[
        &[Scenario::new(
            "variants/1",
            "other Debian releases and settings of hosts: create, again and delete",
            170,
            25,
            variants::run_first,
        )
        .covers(&[capability!("os"), capability!("network")])],
        &[Scenario::new(
            "variants/2",
            "other networks and kinds of cluster: create, again and delete",
            280,
            25,
            variants::run_second,
        )
        .covers(&[capability!("network"), capability!("kube_proxy")])],
    ],
};
