//! Restart a plugin on nodes that lack what its start writes, and on nodes whose object was deleted.
//!
//! A node that registers again gets another range of pods, and the plugin's own notes were on the object that is gone: its
//! pods could no longer be reached.

use kk_config::Host;
use kk_connector::quote;
use kk_engine::{
    Facts, HostWork, ProbeSpec, Task,
    actions::{Command, Directory},
};

use crate::{capabilities::nodes, host_layout::KUBECTL, inputs::Inputs, slots};

/// The program of a plugin on each node.
pub(super) struct Agent {
    /// The name of the plugin.
    pub plugin: &'static str,
    /// The namespace of its `DaemonSet`.
    pub namespace: &'static str,
    /// The name of its `DaemonSet`.
    pub daemon_set: &'static str,
    /// What selects the pods of that.
    pub selector: &'static str,
    /// Files that its start writes on a node, and that must be there: its CNI configuration and its CNI program. Not what
    /// it writes again by itself after a boot, a moment after the host answers.
    pub writes: &'static [&'static str],
    /// A script that forgets the range of pods of before: with it, pods that start before the plugin does would get addresses
    /// that lead nowhere.
    pub forget: &'static str,
}

impl Agent {
    pub(super) fn asks(&self, probe: &mut ProbeSpec) {
        probe.files.extend(self.writes.iter().map(|path| (*path).to_owned()));
    }

    /// On those nodes themselves, then at the API.
    pub(super) fn tasks(&self, inputs: &Inputs) -> Vec<Task> {
        vec![self.prepare(inputs), self.restart(inputs), self.report(inputs)]
    }

    /// What must be right before the plugin starts.
    fn prepare(&self, inputs: &Inputs) -> Task {
        let mut task = Task::new("prepare_nodes", format!("Prepare nodes for {}", self.plugin));
        for (host, facts) in inputs.nodes() {
            if was_deleted(inputs, host) {
                let forget = Command::new("remove the bridge of pods and its range", self.forget);
                let work = HostWork::new(vec![Box::new(forget)]);
                task = task.on(&host.name, work.provides(slots::range_forgotten_slot(&host.name)));
            } else if self.lacks(inputs, host, facts) {
                // Where it is gone, containerd makes it for itself alone.
                let directory = Directory::new("/etc/cni/net.d");
                task = task.on(&host.name, HostWork::new(vec![Box::new(directory)]));
            }
        }
        task
    }

    /// By deleting pods. Those of a node that was deleted all go: their addresses are of the old range.
    fn restart(&self, inputs: &Inputs) -> Task {
        let Self { plugin, namespace, selector, .. } = self;
        let task = Task::new(format!("restart_{plugin}"), format!("Restart {plugin}"));
        let nodes = inputs.nodes();
        let name = |(host, _): &(&Host, &Facts)| host.name.clone();
        let deleted: Vec<String> =
            nodes.iter().filter(|(host, _)| was_deleted(inputs, host)).map(name).collect();
        let lacking: Vec<String> = self.lacking(inputs).into_iter().map(|host| host.name.clone()).collect();
        if deleted.is_empty() && lacking.is_empty() {
            return task;
        }
        let delete = |which: &str, node: &String| {
            let node = quote(&format!("spec.nodeName={node}")).into_owned();
            format!("kubectl delete pods {which} --field-selector {node} --timeout=90s >/dev/null\n")
        };
        let own = format!("-n {namespace} -l {selector}");
        let script: String = std::iter::once(KUBECTL.to_owned())
            .chain(deleted.iter().map(|node| delete("-A", node)))
            .chain(lacking.iter().map(|node| delete(&own, node)))
            .collect();
        let describe = format!("restart {plugin} on {}", [deleted.clone(), lacking].concat().join(", "));
        let mut work = HostWork::new(vec![Box::new(Command::new(describe, script))])
            .needs(slots::initialised_slot())
            .needs(slots::nodes_registered_slot())
            .needs(slots::node_tools_slot(&inputs.api_host.name));
        for node in &deleted {
            work = work.needs(slots::range_forgotten_slot(node));
        }
        task.on(&inputs.api_host.name, work.provides(slots::plugin_restarted_slot()))
    }

    /// A kubelet learns some seconds late what its runtime lacks, and the API later still: a node would be Ready, then not, then
    /// Ready again. What a kubelet reports that has started since is so.
    fn report(&self, inputs: &Inputs) -> Task {
        let mut task = Task::new("restart_kubelets", "Restart kubelets on nodes that had no network");
        let tests: Vec<String> = self.writes.iter().map(|path| format!("[ -e {} ]", quote(path))).collect();
        let script = format!(
            "echo {} >condition\nkk_wait 120 0.5 'waited until {} has written its files'\nsystemctl restart kubelet.service",
            quote(&tests.join(" && ")),
            self.plugin
        );
        for host in self.lacking(inputs) {
            let restart = Command::new("restart the kubelet when the network is there", script.as_str());
            let work = HostWork::new(vec![Box::new(restart), Box::new(nodes::is_ready_again(inputs, host))])
                .needs(slots::plugin_restarted_slot())
                .provides(slots::network_back_slot(&host.name));
            task = task.on(&host.name, work);
        }
        task
    }

    /// The nodes that lack what the plugin writes.
    pub(super) fn lacking<'a>(&self, inputs: &Inputs<'a>) -> Vec<&'a Host> {
        let lacks = |(host, facts): &(&Host, &Facts)| self.lacks(inputs, host, facts);
        inputs.nodes().into_iter().filter(lacks).map(|(host, _)| host).collect()
    }

    /// The plugin runs in the cluster, and what it writes on each node is not there.
    fn lacks(&self, inputs: &Inputs, host: &Host, facts: &Facts) -> bool {
        let runs = inputs.state.workloads.contains_key(&format!("{}/{}", self.namespace, self.daemon_set));
        let is_node = inputs.has_joined(host) && inputs.is_registered(host);
        runs && is_node && self.writes.iter().any(|path| !facts.files.contains_key(*path))
    }
}

/// It has joined, and the API does not know it.
fn was_deleted(inputs: &Inputs, host: &Host) -> bool {
    inputs.state.answered && inputs.has_joined(host) && !inputs.is_registered(host)
}

#[cfg(test)]
mod tests {
    use kk_engine::{FileFact, Plan};

    use super::*;
    use crate::{
        capabilities::network::flannel::AGENT,
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
            for path in joined.iter().chain(AGENT.writes).filter(|path| *name != spoiled || **path != lost) {
                facts.files.insert((*path).into(), FileFact { sha256: "same".into(), ..FileFact::default() });
            }
        }
        let inputs = session.create_inputs(&probed).await.unwrap();
        let plan = Plan::new(create_cluster::pipeline(&inputs).unwrap(), &probed.facts).unwrap();
        plan.changes().into_iter().filter(|task| task.module == "network").map(|task| task.task).collect()
    }

    #[tokio::test]
    async fn flannel_restarts_where_its_files_are_gone() {
        assert_eq!(planned(true, "").await, [""; 0]);
        for lost in AGENT.writes {
            let tasks = ["prepare_nodes", "restart_flannel", "restart_kubelets"];
            assert_eq!(planned(true, lost).await, tasks);
        }
    }

    #[tokio::test]
    async fn a_node_that_was_deleted_forgets_its_range_of_pods() {
        assert_eq!(planned(false, "").await, ["prepare_nodes", "restart_flannel"]);
    }
}
