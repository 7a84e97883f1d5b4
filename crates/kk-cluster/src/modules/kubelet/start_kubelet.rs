//! Keep the kubelet running.

use kk_artifact::Component;
use kk_engine::{
    HostWork, Task,
    actions::{Unit, any_needed},
};

use super::configure_kubelet;
use crate::{
    BuildError, Target,
    modules::{binaries, slots},
};

/// On nodes that have joined: starts a stopped kubelet, restarts one whose unit or program changes in this run, or is
/// newer than it.
pub(super) fn task(target: &Target) -> Result<Task, BuildError> {
    let mut task = Task::new("start_kubelet", "Start kubelet");
    for host in target.spec.nodes() {
        if !target.has_joined(host) {
            continue;
        }
        // A kubelet registers its node when it starts.
        let lost = target.state.answered && !target.is_registered(host);
        let changes = any_needed(&configure_kubelet::files(target, host)?, target.facts(host))
            || binaries::changes(target, host, Component::Kubelet);
        let unit = Unit::running("kubelet.service").force_restart(lost || changes).restart_after([
            "/etc/systemd/system/kubelet.service",
            "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf",
            "/usr/local/bin/kubelet",
        ]);
        task = task.on(
            &host.name,
            HostWork::new(vec![Box::new(unit)])
                .needs(slots::joined(&host.name).key())
                .needs(slots::kube_programs(&host.name).key()),
        );
    }
    Ok(task)
}
