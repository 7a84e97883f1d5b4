//! Wait until the nodes are registered.

use std::time::Duration;

use kk_config::Host;
use kk_connector::quote;
use kk_engine::{HostWork, Task, actions::WaitUntil};

use crate::{
    base::{host_layout::KUBECTL, slots},
    model::{actions::ForJoined, inputs::Inputs},
};

/// Whether a node was not registered at the time of the probe.
pub(super) fn is_needed(inputs: &Inputs) -> bool {
    inputs.nodes().into_iter().any(|(host, _)| !inputs.is_registered(host))
}

/// A join ends when the kubelet has its credentials; a moment later the kubelet registers its node.
pub(super) fn task(inputs: &Inputs) -> Task {
    let first = &inputs.api_host.name;
    let mut work = HostWork::default().provides(slots::nodes_registered_slot());
    if is_needed(inputs) {
        work.actions.push(Box::new(ForJoined::new(inputs, wait)));
        work = work.needs(slots::initialised_slot()).needs(slots::node_tools_slot(first));
        for (host, _) in inputs.nodes() {
            work = work.after(slots::joined_slot(&host.name));
        }
    }
    Task::new("wait_for_nodes", "Wait for nodes to register")
        .timeout(Duration::from_secs(150))
        .on(first, work)
}

fn wait(nodes: &[&Host]) -> WaitUntil {
    let names: Vec<_> = nodes.iter().map(|host| quote(&host.name)).collect();
    WaitUntil::new(
        "all nodes are registered",
        format!("{KUBECTL}kubectl get nodes {} >/dev/null", names.join(" ")),
    )
    .hint("", "see \"journalctl -u kubelet\" on the node that \"kubectl get nodes\" does not show")
}
