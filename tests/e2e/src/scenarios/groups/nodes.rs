//! The group `nodes`.

use super::super::{add_nodes, address, delete_nodes, etcd_members, first_leaves};
use super::capability;
use crate::selection::When;
use crate::suite::{Group, Scenario};

pub(super) const GROUP: Group = Group {
    name: "nodes",
    when: When::InTurn,
    chains: &[
        &[
            Scenario::new(
                "add-nodes",
                "a worker and a control plane join a cluster that runs, and nothing that was there is disturbed",
                190,
                10,
                add_nodes::run,
            )
            .covers(&[capability!("nodes"), "crates/kk/src/commands/add_nodes.rs"]),
        ],
        &[
            Scenario::new(
                "delete-nodes",
                "a worker and a control plane leave a cluster that keeps running, and their hosts are as before",
                190,
                12,
                delete_nodes::run,
            )
            .covers(&[capability!("nodes"), "crates/kk/src/commands/delete_node.rs"]),
        ],
        &[
            Scenario::new(
                "first-leaves",
                "a control plane on a new machine is another member of etcd, and the first one leaves when no node asks it any more",
                280,
                15,
                first_leaves::run,
            )
            .covers(&[capability!("nodes"), capability!("etcd")]),
        ],
        &[
            Scenario::new(
                "address",
                "a worker, and a control plane with the only member of etcd, get other addresses; also when kk is killed",
                230,
                15,
                address::run,
            )
            .covers(&[capability!("nodes"), capability!("etcd"), capability!("control_plane")]),
        ],
        &[
            Scenario::new(
                "etcd-members",
                "etcd grows from one member to three and loses one; data, API servers and other nodes keep working",
                310,
                12,
                etcd_members::run,
            )
            .covers(&[capability!("etcd")]),
        ],
    ],
};
