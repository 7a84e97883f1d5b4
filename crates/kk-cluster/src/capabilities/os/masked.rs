//! Masked units: systemd does not read their files, and never starts them.

use crate::{
    base::{findings::Findings, host_layout::is_masked},
    model::inputs::Inputs,
};

/// The units that kk writes and that everything depends on.
const UNITS: [&str; 3] = ["etcd", "containerd", "kubelet"];

/// A delete restores the masks.
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
