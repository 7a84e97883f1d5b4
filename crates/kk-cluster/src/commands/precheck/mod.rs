//! Checks before the first change: all hosts and all problems, in one list.
//!
//! A finding is an error (kk changes nothing), a warning (the user decides), or a condition that kk reports and adapts to. The
//! capability of a subject finds its problems; this module contains the loop over the capabilities, and the checks across hosts.
//! The checks are pure: they compute findings from facts.

mod absent;
mod clocks;
pub(crate) mod ports;
mod same_machine;

use kk_engine::Finding;

pub(crate) use absent::{left_by_delete, needed};

use crate::{
    base::findings::{Findings, Setting},
    capabilities::{ca_rotation, etcd_restore},
    model::{
        capability::{Capabilities, taking_part},
        inputs::Inputs,
    },
};

/// Checks every host and the cluster as a whole. Findings are sorted by severity, errors first, and then by the order of the
/// hosts.
pub(crate) fn precheck(capabilities: &Capabilities, inputs: &Inputs) -> Vec<Finding> {
    let capabilities = taking_part(capabilities, inputs);
    let mut found = Findings::default();
    absent::check(inputs, &mut found);
    ports::check(inputs, &mut found);
    ca_rotation::findings(inputs, &mut found);
    etcd_restore::findings(inputs, &mut found);
    for capability in &capabilities {
        capability.findings(inputs, &mut found);
    }
    same_machine::check(inputs, &mut found);
    clocks::check(inputs, &mut found);
    for capability in &capabilities {
        let settings = capability.immutable(inputs).into_iter();
        let stay = settings.filter(|setting| Some(setting.field) != inputs.command.changes());
        found.0.extend(stay.filter_map(Setting::finding));
    }
    let position = |finding: &Finding| {
        inputs.spec.hosts.iter().position(|host| Some(&host.name) == finding.host.as_ref())
    };
    // Findings about the cluster follow those about single hosts, because they may be consequences of them.
    found.0.sort_by_key(|finding| (finding.severity, position(finding).unwrap_or(usize::MAX)));
    found.0
}

#[cfg(test)]
mod tests;
