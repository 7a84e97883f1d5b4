//! The group `input`.

use super::super::{api_sick, bad_input, bastion, ctrl_c, init_fails, sudo, two_networks};
use super::capability;
use crate::selection::When;
use crate::suite::{Group, Scenario};

pub(super) const GROUP: Group = Group {
    name: "input",
    when: When::InTurn,
    chains: &[
        &[Scenario::new(
            "api-sick",
            "an API that does not answer is never taken for a missing one",
            620,
            15,
            api_sick::run,
        )
        .covers(&[capability!("verify"), "crates/kk-cluster/src/base/cluster_state.rs"])],
        &[Scenario::new(
            "bad-input",
            "each wrong input is named before the first change where it can be known, with its exit code",
            230,
            10,
            bad_input::run,
        )
        .covers(&["crates/kk-cluster/src/commands/precheck/", "crates/kk/src/error.rs"])],
        &[Scenario::new(
            "init-fails",
            "a taken port or a missing image is named, etcd keeps its data, and the next create succeeds",
            90,
            8,
            init_fails::run,
        )
        .covers(&[capability!("control_plane"), capability!("images")])],
        &[Scenario::new(
            "sudo",
            "create and delete as a user who needs a password for sudo",
            65,
            6,
            sudo::run,
        )
        .covers(&["crates/kk-connector/"])],
        &[Scenario::new(
            "bastion",
            "hosts behind a jump host, without a network plugin; then with one",
            100,
            6,
            bastion::run,
        )
        .covers(&["crates/kk-connector/", capability!("network")])],
        &[Scenario::new(
            "two-networks",
            "hosts whose default route is another network than the cluster's: pods reach each other",
            60,
            10,
            two_networks::run,
        )
        .covers(&[capability!("network")])],
        &[Scenario::new(
            "ctrl-c",
            "Ctrl-C ends tidily with code 130, and the next create succeeds",
            60,
            6,
            ctrl_c::run,
        )
        .covers(&["crates/kk/src/cancel.rs"])],
    ],
};
