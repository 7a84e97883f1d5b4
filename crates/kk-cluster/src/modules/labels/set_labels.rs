//! Set labels and taints.

use kk_config::{Host, Role};
use kk_connector::quote;
use kk_engine::{HostWork, Task, actions::Command};

use crate::{
    Target,
    cluster_state::Node,
    modules::{KUBECTL, slots},
};

/// The label by which people see workers in `kubectl get nodes`.
const WORKER: &str = "node-role.kubernetes.io/worker";

/// One script for all nodes.
pub(super) fn task(target: &Target) -> Task {
    let task = Task::new("set_labels", "Set labels and taints");
    let unknown = Node::default();
    let mut script = String::new();
    for host in target.spec.nodes() {
        let node = target.state.nodes.get(&host.name).unwrap_or(&unknown);
        script.push_str(&labels(host, node));
        script.push_str(&taints(host, node));
    }
    if script.is_empty() {
        return task;
    }
    let script = format!("{KUBECTL}{script}");
    let mut work = HostWork::new(vec![Box::new(
        Command::new("set labels and taints", script).transient_on("connection refused"),
    )])
    .needs(slots::initialised().key())
    .needs(slots::node_tools(&target.spec.first_control_plane().name).key());
    for host in target.spec.nodes() {
        work = work.awaits(slots::joined(&host.name).key());
    }
    task.retry(kk_engine::Retry::times(3)).on(&target.spec.first_control_plane().name, work)
}

fn labels(host: &Host, node: &Node) -> String {
    let worker = host.has_role(&Role::Worker).then(|| (WORKER.to_owned(), String::new()));
    let wanted: Vec<String> = host
        .labels
        .clone()
        .into_iter()
        .chain(worker)
        .filter(|(key, value)| node.labels.get(key) != Some(value))
        .map(|(key, value)| quote(&format!("{key}={value}")).into_owned())
        .collect();
    if wanted.is_empty() {
        return String::new();
    }
    format!("kubectl label --overwrite node {} {} >/dev/null\n", quote(&host.name), wanted.join(" "))
}

fn taints(host: &Host, node: &Node) -> String {
    let wanted: Vec<String> = host
        .taints
        .iter()
        .map(ToString::to_string)
        .filter(|taint| !node.taints.contains(taint))
        .map(|taint| quote(&taint).into_owned())
        .collect();
    if wanted.is_empty() {
        return String::new();
    }
    format!("kubectl taint --overwrite node {} {} >/dev/null\n", quote(&host.name), wanted.join(" "))
}
