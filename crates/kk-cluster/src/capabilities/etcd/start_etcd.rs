//! Start etcd, and wait until it is healthy.

use std::time::Duration;

use kk_artifact::Component;
use kk_config::Host;
use kk_engine::{
    Action, Facts, HostWork, Task,
    actions::{Unit, WaitUntil, any_needed},
};

use super::{files::files, health};
use crate::{BuildError, capabilities::programs, host_layout::ETCD_CERTS, inputs::Inputs, slots};

/// A new cluster starts on all hosts at once: a member is ready only when most of the others are. One that runs gets its
/// changes member by member, so that it answers meanwhile, and a setting that it cannot start with reaches one only.
///
/// In the background: only `kubeadm init` needs to know.
pub(super) fn task(inputs: &Inputs) -> Result<Task, BuildError> {
    let mut task = Task::new("start_etcd", "Start etcd").timeout(Duration::from_secs(150)).beside();
    let hosts = inputs.etcd_hosts();
    let running = hosts.iter().filter(|(_, facts)| is_active(facts)).count();
    let one_by_one = running * 2 > hosts.len();
    if one_by_one {
        task = task.concurrency(1);
    }
    for (host, facts) in hosts {
        let unit = unit(inputs, host, facts)?;
        let unit = if one_by_one { unit } else { unit.no_block() };
        let stays = is_active(facts) && !unit.check(facts).is_needed();
        let wait = WaitUntil::new("etcd is healthy", health::command(inputs.spec, host))
            .done_by(move |facts| stays && facts.answer(&health::HEALTHY).answered() == Some(true))
            .hint(
                "",
                "see \"journalctl -u etcd\" on the host; the members must reach each other on their peer port",
            );
        task = task.on(
            &host.name,
            HostWork::new(vec![Box::new(unit), Box::new(wait)])
                .needs(slots::etcd_configured_slot(&host.name))
                .needs(slots::runtime_programs_slot(&host.name))
                .provides(slots::etcd_healthy_slot(&host.name)),
        );
    }
    Ok(task)
}

fn is_active(facts: &Facts) -> bool {
    facts.units.get("etcd.service").is_some_and(|unit| unit.active)
}

/// Restarted for what changes in this run, and for what an earlier one changed before it was killed.
fn unit(inputs: &Inputs, host: &Host, facts: &Facts) -> Result<Unit, BuildError> {
    let changes =
        any_needed(&files(inputs, host, facts)?, facts) || programs::changes(inputs, host, Component::Etcd);
    Ok(Unit::running("etcd.service").force_restart(changes).restart_after([
        "/etc/etcd.env".to_owned(),
        "/etc/systemd/system/etcd.service".to_owned(),
        "/usr/local/bin/etcd".to_owned(),
        format!("{ETCD_CERTS}/member-{}.pem", host.name),
    ]))
}
