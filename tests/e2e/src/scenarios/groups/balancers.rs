//! The group `balancers`.

use super::super::balancer;
use super::capability;
use crate::selection::When;
use crate::suite::{Group, Scenario};

pub(super) const GROUP: Group = Group {
    name: "balancers",
    when: When::InTurn,
    chains: &[
        &[
            Scenario::new(
                "ha-haproxy",
                "a worker with haproxy always reaches the API while each of three control planes loses its power in turn",
                420,
                30,
                balancer::run_haproxy,
            )
            .needs(&balancer::HAPROXY)
            .covers(&[capability!("balancer"), "templates/balancer/"]),
        ],
        &[
            Scenario::new(
                "ha-three",
                "three hosts that have all roles use their own API servers, also when one has no power",
                120,
                10,
                balancer::run_three,
            )
            .covers(&[capability!("balancer")]),
        ],
        &[
            Scenario::new(
                "ha-change",
                "the API moves to haproxy, also when kk is killed, back to a control plane, and to and from a load balancer",
                260,
                20,
                balancer::run_change,
            )
            .needs(&balancer::HAPROXY)
            .covers(&[capability!("balancer"), capability!("nodes"), "templates/balancer/"]),
        ],
    ],
};
