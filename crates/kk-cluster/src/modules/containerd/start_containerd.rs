//! Start containerd.

use kk_engine::{HostWork, Task, actions::Unit};

use crate::{Target, modules::slots};

/// Restarts only when a file that it reads at its start is newer than the process; pods keep running meanwhile.
pub(super) fn task(target: &Target) -> Task {
    let mut task = Task::new("start_containerd", "Start containerd");
    for host in target.spec.nodes() {
        let unit = Unit::running("containerd.service").restart_after([
            "/etc/containerd/config.toml".to_owned(),
            "/etc/systemd/system/containerd.service".to_owned(),
            "/usr/local/bin/containerd".to_owned(),
        ]);
        task = task.on(
            &host.name,
            HostWork::new(vec![Box::new(unit)])
                .needs(slots::runtime_programs(&host.name).key())
                .provides(slots::runtime(&host.name).key()),
        );
    }
    task
}
