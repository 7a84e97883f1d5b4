//! Start the registry.

use std::sync::Arc;

use kk_artifact::Component;
use kk_config::OwnRegistry;
use kk_engine::{
    HostWork, Task,
    actions::{Unit, any_needed},
};

use super::{PROGRAM, PUSH_UNIT, PUSH_UNIT_FILE, SETTINGS, UNIT, UNIT_FILE, configure_registry::files};
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
    let unit = |unit: &str, file: &str, port: u16, settings: [&str; 2]| {
        let listens = facts.is_some_and(|facts| facts.ports.contains_key(&port));
        let read =
            ["tls.crt", "tls.key"].into_iter().chain(settings).map(|name| format!("{SETTINGS}/{name}"));
        Unit::running(unit)
            .force_restart(changes || !listens)
            .restart_after(read.chain([file, PROGRAM].map(str::to_owned)))
            .hint("", "see \"journalctl -u registry -u registry-push\" on the host")
    };
    let work = HostWork::new(vec![
        Box::new(unit(UNIT, UNIT_FILE, own.port, ["htpasswd", "config.yml"])),
        Box::new(unit(PUSH_UNIT, PUSH_UNIT_FILE, own.push_port, ["htpasswd-push", "push.yml"])),
    ])
    .provides(slots::registry_started_slot());
    Ok(Task::new("start_registry", "Start the registry").on(&own.host.name, work))
}
