//! Start the kubelet.

use kk_artifact::Component;
use kk_engine::{
    HostWork, Task,
    actions::{Unit, any_needed},
};

use crate::{
    BuildError,
    capabilities::{kubelet, programs},
    inputs::Inputs,
    slots,
};

/// On nodes that have joined: starts a stopped kubelet, restarts one whose unit or program changes in this run, or is
/// newer than it.
pub(super) fn task(inputs: &Inputs) -> Result<Task, BuildError> {
    let mut task = Task::new("start_kubelet", "Start kubelet");
    for (host, facts) in inputs.nodes() {
        if !inputs.has_joined(host) {
            continue;
        }
        // A kubelet registers its node when it starts.
        let lost = inputs.state.answered && !inputs.is_registered(host);
        let changes = any_needed(&kubelet::files(inputs, host)?, facts)
            || programs::changes(inputs, host, Component::Kubelet);
        let unit = Unit::running("kubelet.service")
            .force_restart(lost || changes)
            .restart_after(kubelet::RESTARTS_AFTER);
        task = task.on(
            &host.name,
            HostWork::new(vec![Box::new(unit)])
                .needs(slots::joined_slot(&host.name))
                .needs(slots::kube_programs_slot(&host.name)),
        );
    }
    Ok(task)
}
