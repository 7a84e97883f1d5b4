//! The group `high-availability`.

use super::super::{address, endpoint, ha, host_down};
use super::capability;
use crate::selection::When;
use crate::suite::{Group, Scenario};

pub(super) const GROUP: Group = Group {
    name: "high-availability",
    when: When::InTurn,
    chains: &[
        &[
            Scenario::new(
                "ha",
                "three control planes; the API answers when one host has no power",
                85,
                6,
                ha::run,
            )
            .covers(&[capability!("control_plane")]),
        ],
        &[
            Scenario::new(
                "address-ha",
                "two of three control planes that are members of etcd get other addresses, one after the other",
                330,
                15,
                address::run_ha,
            )
            .covers(&[capability!("nodes"), capability!("etcd"), capability!("control_plane")]),
        ],
        &[
            Scenario::new(
                "endpoint",
                "the API moves from a control plane to a load balancer, also when kk is killed, and back when that is lost",
                150,
                15,
                endpoint::run,
            )
            .covers(&[capability!("nodes")]),
        ],
        &[
            Scenario::new(
                "host-down",
                "with hosts switched off, the rest is repaired and what was left is named",
                270,
                20,
                host_down::run,
            )
            .covers(&[capability!("verify")]),
        ],
    ],
};
