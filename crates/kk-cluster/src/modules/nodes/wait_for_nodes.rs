//! Wait until the nodes are registered.

use std::time::Duration;

use kk_config::Host;
use kk_connector::quote;
use kk_engine::{HostWork, Slot, Task, actions::WaitUntil};

use crate::{
    Target,
    modules::{KUBECTL, joined::ForJoined, slots},
};

/// The API lists all nodes.
pub(super) fn registered() -> Slot<()> {
    Slot::new("nodes_registered")
}

/// Whether a node was not registered at the time of the probe.
pub(super) fn is_needed(target: &Target) -> bool {
    !target.spec.nodes().into_iter().all(|host| target.is_registered(host))
}

/// A join is done when the kubelet has its credentials; a moment later it registers its node.
pub(super) fn task(target: &Target) -> Task {
    let first = &target.spec.first_control_plane().name;
    let mut work = HostWork::default().provides(registered().key());
    if is_needed(target) {
        work.actions.push(Box::new(ForJoined::new(target, wait)));
        work = work.needs(slots::initialised().key()).needs(slots::node_tools(first).key());
        for host in target.spec.nodes() {
            work = work.awaits(slots::joined(&host.name).key());
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
