//! Remove rules that kube-proxy has left in the kernel.

use kk_engine::{HostWork, Task, actions::Command};

use crate::{base::shell::REMOVE_CHAINS, model::inputs::Inputs};

/// Removes the rules on every node.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("remove_kube_proxy", "Remove rules of kube-proxy");
    for (host, _) in inputs.nodes() {
        let script = format!("{REMOVE_CHAINS}{}", include_str!("remove_kube_proxy.sh"));
        let remove = Command::new("remove packet filter rules of Kubernetes", script);
        task = task.on(&host.name, HostWork::new(vec![Box::new(remove)]));
    }
    task
}
