//! Masked units: systemd reads no file of theirs, and never starts them.

use kk_engine::Facts;

use crate::{findings::Findings, inputs::Inputs};

/// Units that kk writes, and without which nothing works.
const UNITS: [&str; 3] = ["etcd", "containerd", "kubelet"];

/// Whether the file of a unit of kk is a link to /dev/null. What replaces it unmasks the unit.
pub(crate) fn is_masked(facts: &Facts, unit: &str) -> bool {
    facts
        .files
        .get(&format!("/etc/systemd/system/{unit}.service"))
        .is_some_and(|file| file.link == "/dev/null")
}

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
                "they are unmasked; a delete masks them again",
            );
        }
    }
}
