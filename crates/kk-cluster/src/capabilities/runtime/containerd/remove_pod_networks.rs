//! Remove the networks that CNI created for pods.

use kk_engine::{HostWork, Task, actions::Command};

use crate::{base::shell::REMOVE_CHAINS, model::inputs::Inputs};

/// Runs on every node, after its pods were removed.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("remove_pod_networks", "Remove networks of pods");
    for (host, _) in inputs.nodes() {
        let script = format!("{REMOVE_CHAINS}{}", include_str!("remove_pod_networks.sh"));
        let remove = Command::new("remove rules and network namespaces of pods", script);
        task = task.on(&host.name, HostWork::new(vec![Box::new(remove)]));
    }
    task
}
