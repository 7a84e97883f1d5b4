//! Restart flannel on nodes that lack what its start writes, and on nodes whose object was deleted.
//!
//! A node that registers again gets another range of pods, and flannel's own notes were on the object that is gone: its
//! pods could no longer be reached.

use kk_config::Host;
use kk_connector::quote;
use kk_engine::{
    Facts, HostWork, ProbeSpec, Task,
    actions::{Command, Directory},
};

use crate::{host_layout::KUBECTL, inputs::Inputs, slots};

/// The CNI configuration and the CNI program. Not the node's range of pods below /run: after a boot flannel writes it by
/// itself, a moment after the host answers.
const WRITTEN: [&str; 2] = ["/etc/cni/net.d/10-flannel.conflist", "/opt/cni/bin/flannel"];

/// Forgets the old range: with it, pods that start before flannel does would get addresses that lead nowhere.
const FORGET: &str =
    "rm -f /run/flannel/subnet.env\n! ip link show cni0 >/dev/null 2>&1 || ip link delete cni0\n";

pub(super) fn asks(probe: &mut ProbeSpec) {
    probe.files.extend(WRITTEN.map(str::to_owned));
}

/// On those nodes themselves: what must be right before flannel starts.
pub(super) fn prepare(inputs: &Inputs) -> Task {
    let mut task = Task::new("prepare_nodes", "Prepare nodes for flannel");
    for (host, facts) in inputs.nodes() {
        if was_deleted(inputs, host) {
            let forget = Command::new("remove the bridge of pods and its range", FORGET);
            let work = HostWork::new(vec![Box::new(forget)]);
            task = task.on(&host.name, work.provides(slots::range_forgotten_slot(&host.name)));
        } else if lacks(inputs, host, facts) {
            // Where it is gone, containerd makes it for itself alone.
            let directory = Directory::new("/etc/cni/net.d");
            task = task.on(&host.name, HostWork::new(vec![Box::new(directory)]));
        }
    }
    task
}

/// By deleting pods, at the API. Those of a node that was deleted all go: their addresses are of the old range.
pub(super) fn task(inputs: &Inputs) -> Task {
    let task = Task::new("restart_flannel", "Restart flannel");
    let nodes = inputs.nodes();
    let name = |(host, _): &(&Host, &Facts)| host.name.clone();
    let deleted: Vec<String> = nodes.iter().filter(|(host, _)| was_deleted(inputs, host)).map(name).collect();
    let lacking: Vec<String> =
        nodes.iter().filter(|(host, facts)| lacks(inputs, host, facts)).map(name).collect();
    if deleted.is_empty() && lacking.is_empty() {
        return task;
    }
    let delete = |which: &str, node: &String| {
        let node = quote(&format!("spec.nodeName={node}")).into_owned();
        format!("kubectl delete pods {which} --field-selector {node} --timeout=90s >/dev/null\n")
    };
    let script: String = std::iter::once(KUBECTL.to_owned())
        .chain(deleted.iter().map(|node| delete("-A", node)))
        .chain(lacking.iter().map(|node| delete("-n kube-flannel -l app=flannel", node)))
        .collect();
    let describe = format!("restart flannel on {}", [deleted.clone(), lacking].concat().join(", "));
    let mut work = HostWork::new(vec![Box::new(Command::new(describe, script))])
        .needs(slots::initialised_slot())
        .needs(slots::nodes_registered_slot())
        .needs(slots::node_tools_slot(&inputs.api_host.name));
    for node in &deleted {
        work = work.needs(slots::range_forgotten_slot(node));
    }
    task.on(&inputs.api_host.name, work)
}

/// It has joined, and the API does not know it.
fn was_deleted(inputs: &Inputs, host: &Host) -> bool {
    inputs.state.answered && inputs.has_joined(host) && !inputs.is_registered(host)
}

/// Flannel runs in the cluster, and what it writes on each node is not there.
fn lacks(inputs: &Inputs, host: &Host, facts: &Facts) -> bool {
    let runs = inputs.state.workloads.contains_key("kube-flannel/kube-flannel-ds");
    let is_node = inputs.has_joined(host) && inputs.is_registered(host);
    runs && is_node && WRITTEN.iter().any(|path| !facts.files.contains_key(*path))
}

#[cfg(test)]
mod tests {
    use kk_engine::{FileFact, Plan};

    use super::*;
    use crate::{
        cluster_state::{API, INITIALISED},
        pipelines::create_cluster,
        testing,
    };

    /// What is planned for flannel on three nodes, when this one is spoiled.
    async fn planned(registered: bool, lost: &str) -> Vec<String> {
        let spec = testing::sample("three-nodes.yaml");
        let spoiled = spec.hosts[2].name.clone();
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        let mut probed = testing::fresh(&spec);
        let node = |host: &Host| format!("Node\t{}\tTrue\tv1.36.4\t\t\n", host.name);
        let nodes: String =
            spec.hosts.iter().filter(|host| registered || host.name != spoiled).map(node).collect();
        for (name, facts) in &mut probed.facts {
            facts.reply(&INITIALISED, "yes");
            facts.reply(&API, format!("{nodes}DaemonSet\tkube-flannel/kube-flannel-ds\t3\t3\nend\n"));
            let joined = ["/etc/kubernetes/kubelet.conf", "/etc/kubernetes/pki/ca.crt"];
            for path in joined.into_iter().chain(WRITTEN).filter(|path| *name != spoiled || *path != lost) {
                facts.files.insert(path.into(), FileFact { sha256: "same".into(), ..FileFact::default() });
            }
        }
        let inputs = session.create_inputs(&probed).await.unwrap();
        let plan = Plan::new(create_cluster::pipeline(&inputs).unwrap(), &probed.facts).unwrap();
        plan.changes().into_iter().filter(|task| task.module == "network").map(|task| task.task).collect()
    }

    #[tokio::test]
    async fn flannel_restarts_where_its_files_are_gone() {
        assert_eq!(planned(true, "").await, [""; 0]);
        for lost in WRITTEN {
            assert_eq!(planned(true, lost).await, ["prepare_nodes", "restart_flannel"]);
        }
    }

    #[tokio::test]
    async fn a_node_that_was_deleted_forgets_its_range_of_pods() {
        assert_eq!(planned(false, "").await, ["prepare_nodes", "restart_flannel"]);
    }
}
