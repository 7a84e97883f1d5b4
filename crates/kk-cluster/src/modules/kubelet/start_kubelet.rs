//! Keep the kubelet running.

use kk_engine::{HostWork, Task, actions::Unit};

use crate::{Target, modules::slots};

/// On nodes that have joined: starts a stopped kubelet, restarts one whose unit or program is newer than it.
pub(super) fn task(target: &Target) -> Task {
    let mut task = Task::new("start_kubelet", "Start kubelet");
    for host in target.spec.nodes() {
        if !target.has_joined(host) {
            continue;
        }
        // A kubelet registers its node when it starts.
        let lost = target.state.answered && !target.is_registered(host);
        let unit = Unit::running("kubelet.service").force_restart(lost).restart_after([
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
    task
}
