//! Two names of the file that lead to one machine.

use std::collections::BTreeMap;

use kk_engine::{Question, question};

use crate::{findings::Findings, inputs::Inputs};

/// The id of the machine; empty where there is none.
pub(crate) const MACHINE_ID: Question<String> =
    Question::new("machine_id", "cat /etc/machine-id 2>/dev/null || :", question::text);

pub(super) fn check(inputs: &Inputs, found: &mut Findings) {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for (host, facts) in inputs.hosts() {
        let Some(id) = facts.answer(&MACHINE_ID).answered().filter(|id| !id.is_empty()) else { continue };
        if let Some(other) = seen.insert(id, &host.name) {
            found.warning(
                host,
                format!("it has the machine id of {other}"),
                "two names of one machine, or a cloned machine: give it an /etc/machine-id of its own",
            );
        }
    }
}
