//! The group `damage`.

use super::super::damage;
use super::capability;
use crate::selection::When;
use crate::suite::{Group, Scenario};

pub(super) const GROUP: Group = Group {
    name: "damage",
    when: When::InTurn,
    chains: &[
        &[Scenario::new(
            "damage/1",
            "the first half of a long list of damages: one create repairs each, and nothing else is touched",
            560,
            25,
            damage::run_first,
        )
        .covers(&[
            capability!("control_plane"),
            capability!("etcd"),
            capability!("kubelet"),
            capability!("runtime"),
            capability!("programs"),
        ])],
        &[Scenario::new(
            "damage/2",
            "the second half of these damages; every file that a create leaves is known to a damage",
            600,
            30,
            damage::run_second,
        )
        .covers(&[
            capability!("dns"),
            capability!("kube_proxy"),
            capability!("network"),
            capability!("nodes"),
            capability!("verify"),
        ])],
    ],
};
