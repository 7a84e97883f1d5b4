//! Start etcd.

use kk_engine::{HostWork, Slot, Task, actions::Unit};

use super::CERTS;
use crate::{Target, modules::slots};

/// The member of this host was told to start.
pub(super) fn started(host: &str) -> Slot<()> {
    Slot::of_host("etcd_started", host)
}

/// Starts without waiting: a member is ready only when most of the others are, and they start at the same time.
pub(super) fn task(target: &Target) -> Task {
    let mut task = Task::new("start_etcd", "Start etcd");
    for host in target.spec.etcd_hosts() {
        let member = format!("{CERTS}/member-{}", host.name);
        let unit = Unit::running("etcd.service").no_block().restart_after([
            "/etc/etcd.env".to_owned(),
            "/etc/systemd/system/etcd.service".to_owned(),
            "/usr/local/bin/etcd".to_owned(),
            format!("{member}.pem"),
        ]);
        task = task.on(
            &host.name,
            HostWork::new(vec![Box::new(unit)])
                .needs(slots::runtime_programs(&host.name).key())
                .provides(started(&host.name).key()),
        );
    }
    task
}
