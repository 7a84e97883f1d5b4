//! Start containerd.

use kk_artifact::Component;
use kk_engine::{
    HostWork, Task,
    actions::{Unit, any_needed},
};

use super::files::files;
use crate::{BuildError, capabilities::programs, inputs::Inputs, slots};

/// Restarts only when something that it reads at its start changes in this run, or is newer than the process because an
/// earlier run was killed; pods keep running meanwhile.
pub(super) fn task(inputs: &Inputs) -> Result<Task, BuildError> {
    let mut task = Task::new("start_containerd", "Start containerd");
    for (host, facts) in inputs.nodes() {
        let changes = any_needed(&files(inputs, facts)?, facts)
            || programs::changes(inputs, host, Component::Containerd);
        let unit = Unit::running("containerd.service").force_restart(changes).restart_after([
            "/etc/containerd/config.toml",
            "/etc/systemd/system/containerd.service",
            "/usr/local/bin/containerd",
        ]);
        task = task.on(
            &host.name,
            HostWork::new(vec![Box::new(unit)])
                .needs(slots::runtime_programs_slot(&host.name))
                .provides(slots::runtime_slot(&host.name)),
        );
    }
    Ok(task)
}
