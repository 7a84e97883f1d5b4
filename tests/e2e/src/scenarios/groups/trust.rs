//! The group `trust`.

use super::super::{hostile_host, secrets};
use super::capability;
use crate::selection::When;
use crate::suite::{Group, Scenario};

pub(super) const GROUP: Group = Group {
    name: "trust",
    when: When::InTurn,
    chains: &[
        &[Scenario::new(
            "hostile-host",
            "a host that lies is named, within bounds of time and memory, and controls no terminal",
            540,
            30,
            hostile_host::run,
        )
        .covers(&[
            "crates/kk-connector/src/exchange/",
            "crates/kk-engine/src/probe/",
            "crates/kk-engine/src/escape.rs",
            capability!("kubeconfig"),
        ])],
        &[Scenario::new(
            "secrets",
            "passwords and keys are in no log, journal, output, process list or world-readable file",
            60,
            6,
            secrets::run,
        )
        .covers(&["crates/kk-engine/src/redact.rs"])],
    ],
};
