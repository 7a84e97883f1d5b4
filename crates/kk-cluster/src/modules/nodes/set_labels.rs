//! Set labels and taints.

use std::{collections::BTreeMap, fmt::Write as _};

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
    let script = script(target);
    if script.is_empty() {
        return task;
    }
    let first = &target.spec.first_control_plane().name;
    let script = format!("{KUBECTL}{script}");
    let mut work = HostWork::new(vec![Box::new(
        Command::new("set labels and taints", script).transient_on("connection refused"),
    )])
    .needs(slots::initialised().key())
    .needs(slots::node_tools(first).key());
    for host in target.spec.nodes() {
        work = work.awaits(slots::joined(&host.name).key());
    }
    task.retry(kk_engine::Retry::times(3)).on(first, work)
}

/// One command for all nodes that lack the same: each start of `kubectl` costs more than what it does.
fn script(target: &Target) -> String {
    let unknown = Node::default();
    let mut same: BTreeMap<(&str, Vec<String>), Vec<String>> = BTreeMap::new();
    for host in target.spec.nodes() {
        let node = target.state.nodes.get(&host.name).unwrap_or(&unknown);
        for lacking in [("label", labels(host, node)), ("taint", taints(host, node))] {
            if !lacking.1.is_empty() {
                same.entry(lacking).or_default().push(quote(&host.name).into_owned());
            }
        }
    }
    same.into_iter().fold(String::new(), |mut text, ((verb, words), hosts)| {
        let _ = writeln!(
            text,
            "kubectl {verb} --overwrite node {} {} >/dev/null",
            hosts.join(" "),
            words.join(" ")
        );
        text
    })
}

/// The labels that a node lacks, each as a quoted word.
fn labels(host: &Host, node: &Node) -> Vec<String> {
    let worker = host.has_role(&Role::Worker).then(|| (WORKER.to_owned(), String::new()));
    host.labels
        .clone()
        .into_iter()
        .chain(worker)
        .filter(|(key, value)| node.labels.get(key) != Some(value))
        .map(|(key, value)| quote(&format!("{key}={value}")).into_owned())
        .collect()
}

/// The taints that a node lacks, each as a quoted word.
fn taints(host: &Host, node: &Node) -> Vec<String> {
    host.taints
        .iter()
        .map(ToString::to_string)
        .filter(|taint| !node.taints.contains(taint))
        .map(|taint| quote(&taint).into_owned())
        .collect()
}
