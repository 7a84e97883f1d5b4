//! The group `networks`.

use super::super::{KUBE_ROUTER, network_addons};
use super::capability;
use crate::selection::When;
use crate::suite::{Group, Scenario};

pub(super) const GROUP: Group = Group {
    name: "networks",
    when: When::InTurn,
    chains: &[
        &[Scenario::new(
            "network-policy",
            "kube-router, in addition to flannel, enforces a policy between namespaces, and a delete leaves nothing of it",
            135,
            12,
            network_addons::run_policy,
        )
        .needs(KUBE_ROUTER)
        .covers(&[capability!("addons"), capability!("network")])],
        &[Scenario::new(
            "network-addon",
            "without a plugin of kk, an addon connects pods before nodes are Ready; again, changed and deleted",
            115,
            12,
            network_addons::run_alone,
        )
        .needs(KUBE_ROUTER)
        .covers(&[capability!("addons"), capability!("network")])],
    ],
};
