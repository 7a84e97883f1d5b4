//! Start the registry.

use std::sync::Arc;

use kk_artifact::Component;
use kk_config::OwnRegistry;
use kk_engine::{
    HostWork, Task,
    actions::{Unit, any_needed},
};

use super::{PROGRAM, SETTINGS, UNIT, UNIT_FILE, configure_registry::files};
use crate::{
    base::{error::BuildError, pki::Pki, slots},
    capabilities::programs,
    model::inputs::Inputs,
};

/// Restarted for what changes in this run, for what an earlier one changed before it was killed, and when it runs without
/// listening on its port.
pub(super) fn task(inputs: &Inputs, own: &OwnRegistry<'_>, pki: &Arc<Pki>) -> Result<Task, BuildError> {
    let facts = inputs.facts(own.host);
    let files = files(inputs, own, pki)?;
    let changes = facts.is_some_and(|facts| any_needed(&files, facts))
        || programs::changes(inputs, own.host, Component::Registry);
    let listens = facts.is_some_and(|facts| facts.ports.contains_key(&own.port));
    let read = ["tls.crt", "tls.key", "htpasswd", "config.yml"].map(|name| format!("{SETTINGS}/{name}"));
    let unit = Unit::running(UNIT)
        .force_restart(changes || !listens)
        .restart_after(read.into_iter().chain([UNIT_FILE, PROGRAM].map(str::to_owned)))
        .hint("", "see \"journalctl -u registry\" on the host");
    let work = HostWork::new(vec![Box::new(unit)]).provides(slots::registry_started_slot());
    Ok(Task::new("start_registry", "Start the registry").on(&own.host.name, work))
}
