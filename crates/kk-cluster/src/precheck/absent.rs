//! Hosts that did not answer: nothing is known about them, so nothing is begun.

use crate::{
    findings::Findings,
    inputs::{Inputs, Presence},
};

pub(super) fn check(inputs: &Inputs, found: &mut Findings) {
    for host in &inputs.spec.hosts {
        if let Some(Presence::Absent(why)) = inputs.presence.get(host.name.as_str()) {
            found.error(
                host,
                format!("it did not answer: {}", why.cause),
                why.hint
                    .clone()
                    .unwrap_or_else(|| "make it reachable, or take it out of the file".to_owned()),
            );
        }
    }
}
