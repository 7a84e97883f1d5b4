//! Start etcd, and wait until it is healthy.

use std::time::Duration;

use kk_artifact::Component;
use kk_config::Host;
use kk_engine::{
    Action, HostWork, Slot, Task,
    actions::{Unit, WaitUntil, any_needed},
};

use super::{CERTS, configure_etcd};
use crate::{
    BuildError, Target,
    modules::{binaries, slots},
};

/// The files that etcd reads at its start are on the host.
pub(super) fn configured(host: &str) -> Slot<()> {
    Slot::of_host("etcd_configured", host)
}

/// A new cluster starts on all hosts at once: a member is ready only when most of the others are. One that runs gets its
/// changes member by member, so that it answers meanwhile, and a setting that it cannot start with reaches one only.
///
/// Beside the lane: only `kubeadm init` needs to know.
pub(super) fn task(target: &Target) -> Result<Task, BuildError> {
    let mut task = Task::new("start_etcd", "Start etcd").timeout(Duration::from_secs(150)).beside();
    let hosts = target.spec.etcd_hosts();
    let running = hosts.iter().filter(|host| is_active(target, host)).count();
    let one_by_one = running * 2 > hosts.len();
    if one_by_one {
        task = task.concurrency(1);
    }
    for host in hosts {
        let unit = unit(target, host)?;
        let unit = if one_by_one { unit } else { unit.no_block() };
        let facts = target.facts(host);
        let stays = is_active(target, host) && !unit.check(facts).is_needed();
        let wait = WaitUntil::new("etcd is healthy", super::health_command(target.spec, host))
            .done_by(move |facts| stays && facts.values.get("etcd").is_some_and(|answer| answer == "healthy"))
            .hint(
                "",
                "see \"journalctl -u etcd\" on the host; the members must reach each other on their peer port",
            );
        task = task.on(
            &host.name,
            HostWork::new(vec![Box::new(unit), Box::new(wait)])
                .needs(configured(&host.name).key())
                .needs(slots::runtime_programs(&host.name).key())
                .provides(slots::etcd_healthy(&host.name).key()),
        );
    }
    Ok(task)
}

fn is_active(target: &Target, host: &Host) -> bool {
    target.facts(host).units.get("etcd.service").is_some_and(|unit| unit.active)
}

/// Restarted for what changes in this run, and for what an earlier one changed before it was killed.
fn unit(target: &Target, host: &Host) -> Result<Unit, BuildError> {
    let changes = any_needed(&configure_etcd::files(target, host)?, target.facts(host))
        || binaries::changes(target, host, Component::Etcd);
    Ok(Unit::running("etcd.service").force_restart(changes).restart_after([
        "/etc/etcd.env".to_owned(),
        "/etc/systemd/system/etcd.service".to_owned(),
        "/usr/local/bin/etcd".to_owned(),
        format!("{CERTS}/member-{}.pem", host.name),
    ]))
}
