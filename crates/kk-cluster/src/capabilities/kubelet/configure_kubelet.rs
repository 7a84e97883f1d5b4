//! Configure the kubelet: its unit and its flags.

use kk_engine::{HostWork, Task, actions::Unit};

use super::files::files;
use crate::{BuildError, inputs::Inputs};

/// Enabled, not started: kubeadm starts it when its credentials are there.
pub(super) fn task(inputs: &Inputs) -> Result<Task, BuildError> {
    let mut task = Task::new("configure_kubelet", "Configure kubelet");
    for (host, _) in inputs.nodes() {
        let mut actions = files(inputs, host)?;
        actions.push(Box::new(Unit::enabled("kubelet.service")));
        task = task.on(&host.name, HostWork::new(actions));
    }
    Ok(task)
}
