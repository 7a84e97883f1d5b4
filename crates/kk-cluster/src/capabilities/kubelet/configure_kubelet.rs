//! Configure the kubelet: its unit and its flags.

use kk_engine::{Action, HostWork, Task, actions::Unit};

use super::{changes_in_turn, files::files};
use crate::{base::error::BuildError, model::inputs::Inputs};

/// The unit is enabled but not started, because kubeadm starts it when its credentials exist. A running kubelet gets its changes
/// in its turn.
pub(super) fn task(inputs: &Inputs) -> Result<Task, BuildError> {
    let mut task = Task::new("configure_kubelet", "Configure kubelet");
    for (host, facts) in inputs.nodes() {
        let mut actions: Vec<Box<dyn Action>> = Vec::new();
        if !changes_in_turn(inputs, host, facts) {
            actions.extend(files(inputs, host)?);
        }
        actions.push(Box::new(Unit::enabled("kubelet.service")));
        task = task.on(&host.name, HostWork::new(actions));
    }
    Ok(task)
}
