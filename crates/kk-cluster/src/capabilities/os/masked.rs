//! Masked units: systemd reads no file of theirs, and never starts them.

use crate::{
    base::{findings::Findings, host_layout::is_masked},
    model::inputs::Inputs,
};

/// Units that kk writes, and without which nothing works.
const UNITS: [&str; 3] = ["etcd", "containerd", "kubelet"];

/// A delete puts the masks back.
pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    for (host, facts) in inputs.hosts() {
        let masked: Vec<&str> = UNITS.into_iter().filter(|unit| is_masked(facts, unit)).collect();
        if !masked.is_empty() {
            found.adapted(
                host,
                format!(
                    "masked: {}",
                    masked.iter().map(|unit| format!("{unit}.service")).collect::<Vec<_>>().join(", ")
                ),
                "kk unmasks them; kk delete cluster masks them again",
            );
        }
    }
}
