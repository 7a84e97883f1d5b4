//! Masked units: systemd does not read their files, and never starts them.

use crate::{
    base::{findings::Findings, host_layout::is_masked},
    model::inputs::Inputs,
};

/// Reports masked units among the units that kk writes and that everything depends on. A delete restores the masks.
pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    let units = ["etcd", inputs.runtime.unit, "kubelet"];
    for (host, facts) in inputs.hosts() {
        let masked: Vec<&str> = units.into_iter().filter(|unit| is_masked(facts, unit)).collect();
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
