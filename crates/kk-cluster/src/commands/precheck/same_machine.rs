//! Two names in the file that refer to one machine.

use std::collections::BTreeMap;

use crate::{
    base::{findings::Findings, questions::MACHINE_ID},
    model::inputs::Inputs,
};

pub(super) fn check(inputs: &Inputs, found: &mut Findings) {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for (host, facts) in inputs.hosts() {
        let Some(id) = facts.answer(&MACHINE_ID).answered().filter(|id| !id.is_empty()) else { continue };
        if let Some(other) = seen.insert(id, &host.name) {
            found.warning(
                host,
                format!("it has the machine id of {other}"),
                "two names of one machine, or a cloned machine: create a new /etc/machine-id on the clone",
            );
        }
    }
}
