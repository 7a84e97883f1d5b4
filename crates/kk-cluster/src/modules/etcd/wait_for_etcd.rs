//! Wait until etcd is healthy.

use std::time::Duration;

use kk_engine::{HostWork, Task, actions::WaitUntil};

use crate::{Target, modules::slots};

/// Each member says for itself that it has a leader and commits. Beside the lane: only `kubeadm init` needs to know.
pub(super) fn task(target: &Target) -> Task {
    let mut task = Task::new("wait_for_etcd", "Wait for etcd").timeout(Duration::from_secs(150)).beside();
    for host in target.spec.etcd_hosts() {
        let wait = WaitUntil::new("etcd is healthy", super::health_command(target.spec, host))
            .done_by(|facts| facts.values.get("etcd").is_some_and(|answer| answer == "healthy"))
            .hint(
                "",
                "see \"journalctl -u etcd\" on the host; the members must reach each other on their peer port",
            );
        task = task.on(
            &host.name,
            HostWork::new(vec![Box::new(wait)])
                .needs(super::start_etcd::started(&host.name).key())
                .provides(slots::etcd_healthy(&host.name).key()),
        );
    }
    task
}
