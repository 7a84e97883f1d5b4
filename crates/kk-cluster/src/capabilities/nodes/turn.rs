//! The turn of a node in an upgrade: the node is drained before the first change and accepts pods again after the last.

use kk_config::Host;
use kk_connector::quote;
use kk_engine::{
    Facts, HostWork, Task,
    actions::{Command, File},
};

use super::drain;
use crate::{
    base::{
        host_layout::{KUBECTL, UPGRADING},
        slots,
    },
    model::{inputs::Inputs, options::Drain},
};

/// The taint of a node that accepts no pods.
const CORDONED: &str = "node.kubernetes.io/unschedulable:NoSchedule";

/// Whether a run that ended early left the node in its turn.
pub(crate) fn is_begun(facts: &Facts) -> bool {
    facts.files.contains_key(UPGRADING)
}

/// Whether the pods of the node can move to other nodes, and kk itself may uncordon the node. A node that an administrator
/// cordoned stays cordoned.
pub(crate) fn drains(inputs: &Inputs, host: &Host, facts: &Facts) -> bool {
    let is_cordoned = |host: &Host| {
        let node = inputs.state.nodes.get(&host.name);
        node.is_some_and(|node| node.taints.iter().any(|taint| taint == CORDONED))
    };
    let takes_pods = |other: &&Host| other.name != host.name && inputs.is_ready(other) && !is_cordoned(other);
    is_begun(facts) || !is_cordoned(host) && inputs.spec.nodes().iter().any(takes_pods)
}

/// Runs before all tasks that change the host. A mark on the host shows that kk cordoned the node: it is written before the node
/// is cordoned, and removed after the node accepts pods again.
pub(crate) fn begin(inputs: &Inputs, host: &Host, how: &Drain) -> Vec<Task> {
    let mark =
        HostWork::new(vec![Box::new(File::text(UPGRADING, ""))]).provides(slots::turn_begun_slot(&host.name));
    let mut drain = drain::task(inputs, host, how);
    for work in drain.hosts.values_mut() {
        work.needs.push(slots::turn_begun_slot(&host.name));
    }
    let begin = Task::new(format!("begin_turn_{}", host.name), "Begin the turn of a node");
    vec![begin.on(&host.name, mark), drain]
}

/// The tasks that end the turns left by a run that ended early. They belong to a create, which installs the version of the file
/// on these hosts.
pub(super) fn end_left(inputs: &Inputs) -> Vec<Task> {
    let is_left = |(host, facts): &(&Host, &Facts)| is_begun(facts) && inputs.has_joined(host);
    let left = inputs.nodes().into_iter().filter(is_left);
    left.flat_map(|(host, _)| end(inputs, host)).collect()
}

/// Runs after the kubelet works and the node is Ready.
pub(crate) fn end(inputs: &Inputs, host: &Host) -> Vec<Task> {
    let name = quote(&host.name);
    let uncordon =
        Command::new("allow new pods on it again", format!("{KUBECTL}kubectl uncordon {name} >/dev/null\n"))
            .transient_on("connection refused");
    let uncordon = HostWork::new(vec![Box::new(uncordon)])
        .about(&host.name)
        .needs(slots::kubelet_works_slot(&host.name))
        .provides(slots::turn_ended_slot(&host.name));
    let unmark = Command::new("end its turn", format!("rm -f {UPGRADING}"));
    let unmark = HostWork::new(vec![Box::new(unmark)]).needs(slots::turn_ended_slot(&host.name));
    let uncordon_task = Task::new(format!("uncordon_{}", host.name), format!("Uncordon {}", host.name));
    vec![
        uncordon_task.retry(kk_engine::Retry::times(3)).on(&inputs.api_host.name, uncordon),
        Task::new(format!("end_turn_{}", host.name), "End the turn of a node").on(&host.name, unmark),
    ]
}
