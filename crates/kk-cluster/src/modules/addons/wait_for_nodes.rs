//! Wait until the nodes are registered.

use std::time::Duration;

use kk_engine::{
    HostWork, Task,
    actions::{Command, WaitUntil},
};

use crate::{
    Target,
    modules::{KUBECTL, slots},
};

/// Only when a node is not registered yet. A second more lets the kubelets read the Services.
pub(super) fn task(target: &Target) -> Task {
    let task = Task::new("wait_for_nodes", "Wait for nodes to register").timeout(Duration::from_secs(150));
    if target.spec.nodes().into_iter().all(|host| target.is_registered(host)) {
        return task;
    }
    let nodes = target.spec.nodes();
    let condition = format!("{KUBECTL}[ \"$(kubectl get nodes --no-headers | wc -l)\" -ge {} ]", nodes.len());
    let mut work =
        HostWork::new(vec![
            Box::new(WaitUntil::new("all nodes are registered", condition).hint(
                "",
                "see \"journalctl -u kubelet\" on the node that \"kubectl get nodes\" does not show",
            )),
            Box::new(Command::new("let the kubelets read the Services", "sleep 1\n")),
        ])
        .needs(slots::initialised().key())
        .needs(slots::node_tools(&target.spec.first_control_plane().name).key());
    for host in nodes {
        work = work.awaits(slots::joined(&host.name).key());
    }
    task.on(&target.spec.first_control_plane().name, work)
}
