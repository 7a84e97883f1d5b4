//! Start containerd.

use kk_artifact::Component;
use kk_engine::{
    HostWork, Task,
    actions::{Unit, any_needed},
};

use super::configure_containerd;
use crate::{
    BuildError, Target,
    modules::{binaries, slots},
};

/// Restarts only when something that it reads at its start changes in this run, or is newer than the process because an
/// earlier run was killed; pods keep running meanwhile.
pub(super) fn task(target: &Target) -> Result<Task, BuildError> {
    let mut task = Task::new("start_containerd", "Start containerd");
    for host in target.spec.nodes() {
        let changes = any_needed(&configure_containerd::files(target, host)?, target.facts(host))
            || binaries::changes(target, host, Component::Containerd);
        let unit = Unit::running("containerd.service").force_restart(changes).restart_after([
            "/etc/containerd/config.toml",
            "/etc/systemd/system/containerd.service",
            "/usr/local/bin/containerd",
        ]);
        task = task.on(
            &host.name,
            HostWork::new(vec![Box::new(unit)])
                .needs(slots::runtime_programs(&host.name).key())
                .provides(slots::runtime(&host.name).key()),
        );
    }
    Ok(task)
}
