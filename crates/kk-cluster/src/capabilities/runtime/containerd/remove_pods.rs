//! Remove pods with their containers, networks and mounts.

use std::time::Duration;

use kk_engine::{HostWork, Task, actions::Command};

use crate::model::inputs::Inputs;

/// Runs on every node, after the kubelet has stopped.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("remove_pods", "Remove pods").timeout(Duration::from_mins(3));
    for (host, _) in inputs.nodes() {
        let remove = Command::new("remove all pods", include_str!("remove_pods.sh"));
        task = task.on(&host.name, HostWork::new(vec![Box::new(remove)]));
    }
    task
}
