//! Restart a plugin on nodes that lack files or links that its start creates, and on nodes whose pod range changed.
//!
//! A node whose object was deleted registers again and gets another range. The plugin's annotations were part of the deleted
//! object, so pods on the node would be unreachable. The same happens if a run was killed in between, or if links of another
//! range are left.

use std::collections::BTreeMap;

use kk_config::Host;
use kk_connector::quote;
use kk_engine::{
    Action, Facts, HostWork, ProbeSpec, Task,
    actions::{Command, Directory},
};

use crate::{
    base::{findings::Findings, host_layout::KUBECTL, slots},
    capabilities::nodes,
    model::inputs::Inputs,
};

/// The daemon of a plugin on each node.
pub(super) struct Agent {
    /// The name of the plugin.
    pub plugin: &'static str,
    /// The namespace of its `DaemonSet`.
    pub namespace: &'static str,
    /// The name of its `DaemonSet`.
    pub daemon_set: &'static str,
    /// The selector of the pods of the `DaemonSet`.
    pub selector: &'static str,
    /// Files that the plugin writes on a node at its start and that must exist: its CNI configuration and its CNI binary. Files
    /// that the plugin writes again after each boot are not listed, because they may appear only after the host answers.
    pub writes: &'static [&'static str],
    /// A script that removes the previous pod range: with that range, pods that start before the plugin would get unreachable
    /// addresses. `None` if the plugin does not use the pod ranges of nodes.
    pub forget: Option<&'static str>,
    /// A script that connects the pods of a node to their bridge again. `None` for a plugin without a bridge.
    pub mend: Option<&'static str>,
    /// Returns the failures that nodes reported, by node.
    pub broken: fn(&Inputs) -> BTreeMap<String, Broken>,
}

/// The failures of a node, each with a reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Broken {
    /// The plugin has to re-create something.
    pub agent: Option<String>,
    /// Pods are not connected to their bridge.
    pub bridge: Option<String>,
    /// Links and records belong to another range than the node's.
    pub range: Option<String>,
}

/// The nodes with work.
struct Nodes<'a> {
    /// Nodes whose pod range changed.
    renumbered: Vec<&'a Host>,
    /// Nodes on which files of the plugin are missing.
    lacking: Vec<&'a Host>,
    /// Nodes on which the plugin has to re-create links or routes.
    agentless: Vec<&'a Host>,
    /// Nodes whose bridge is broken.
    bridgeless: Vec<&'a Host>,
}

impl Agent {
    pub(super) fn asks(&self, probe: &mut ProbeSpec) {
        probe.files.extend(self.writes.iter().map(|path| (*path).to_owned()));
    }

    /// Reports the failures, and how this run repairs them.
    pub(super) fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        let mut broken = (self.broken)(inputs);
        for (host, _) in inputs.nodes() {
            let Some(Broken { agent, bridge, range }) = broken.remove(&host.name) else { continue };
            let restarts = format!("{} restarts on this node", self.plugin);
            for (why, done) in [
                (agent, restarts.as_str()),
                (bridge, "the bridge is re-created, and pods are connected to it"),
                (
                    range,
                    "the links of the other range are removed, and the pods of this node are deleted, so that their controllers start them again",
                ),
            ] {
                if let Some(why) = why {
                    found.adapted(host, why, done);
                }
            }
        }
    }

    /// First tasks on the nodes themselves, then a task that uses the API.
    pub(super) fn tasks(&self, inputs: &Inputs) -> Vec<Task> {
        let nodes = self.nodes(inputs);
        vec![self.prepare(&nodes), self.restart(inputs, &nodes), self.report(inputs, &nodes)]
    }

    fn nodes<'a>(&self, inputs: &Inputs<'a>) -> Nodes<'a> {
        let broken = (self.broken)(inputs);
        let is = |host: &Host, part: fn(&Broken) -> &Option<String>| {
            broken.get(&host.name).is_some_and(|broken| part(broken).is_some())
        };
        let all = inputs.nodes();
        let select = |which: &dyn Fn(&Host, &Facts) -> bool| {
            let chosen = all.iter().filter(|(host, facts)| which(host, facts));
            chosen.map(|(host, _)| *host).collect::<Vec<_>>()
        };
        let renumbered = |host: &Host| was_deleted(inputs, host) || is(host, |broken| &broken.range);
        Nodes {
            renumbered: select(&|host, _| renumbered(host)),
            lacking: self.lacking(inputs),
            agentless: select(&|host, facts| {
                !renumbered(host) && !self.lacks(inputs, host, facts) && is(host, |broken| &broken.agent)
            }),
            bridgeless: select(&|host, _| !renumbered(host) && is(host, |broken| &broken.bridge)),
        }
    }

    /// Prepares nodes before the plugin starts.
    fn prepare(&self, nodes: &Nodes) -> Task {
        let mut task = Task::new("prepare_nodes", format!("Prepare nodes for {}", self.plugin));
        for host in &nodes.renumbered {
            let Some(forget) = self.forget else { continue };
            let forget = Command::new("remove the bridge of pods and its range", forget);
            let work = HostWork::new(vec![Box::new(forget)]);
            task = task.on(&host.name, work.provides(slots::range_forgotten_slot(&host.name)));
        }
        let is_new = |host: &&Host| nodes.renumbered.iter().all(|other| other.name != host.name);
        let names = nodes.lacking.iter().chain(&nodes.bridgeless).copied().filter(is_new);
        let others: BTreeMap<&str, &Host> = names.map(|host| (host.name.as_str(), host)).collect();
        for (name, _) in others {
            let has = |hosts: &[&Host]| hosts.iter().any(|host| host.name == name);
            let mut actions: Vec<Box<dyn Action>> = Vec::new();
            if has(&nodes.lacking) {
                // If the directory is missing, containerd creates it with access only for itself.
                actions.push(Box::new(Directory::new("/etc/cni/net.d")));
            }
            if let Some(mend) = self.mend.filter(|_| has(&nodes.bridgeless)) {
                actions.push(Box::new(Command::new("connect pods to their bridge again", mend)));
            }
            task = task.on(name, HostWork::new(actions));
        }
        task
    }

    /// Restarts the plugin by deleting its pods. On a node with another range all pods are deleted, because their addresses
    /// belong to the old range.
    fn restart(&self, inputs: &Inputs, nodes: &Nodes) -> Task {
        let Self { plugin, namespace, selector, .. } = self;
        let task = Task::new(format!("restart_{plugin}"), format!("Restart {plugin}"));
        let names = |hosts: &[&Host]| hosts.iter().map(|host| host.name.clone()).collect::<Vec<_>>();
        let renumbered = names(&nodes.renumbered);
        let lacking = [names(&nodes.lacking), names(&nodes.agentless)].concat();
        if renumbered.is_empty() && lacking.is_empty() {
            return task;
        }
        let delete = |which: &str, node: &String| {
            let node = quote(&format!("spec.nodeName={node}")).into_owned();
            format!("kubectl delete pods {which} --field-selector {node} --timeout=90s >/dev/null\n")
        };
        let own = format!("-n {namespace} -l {selector}");
        let script: String = std::iter::once(KUBECTL.to_owned())
            .chain(renumbered.iter().map(|node| delete("-A", node)))
            .chain(lacking.iter().map(|node| delete(&own, node)))
            .collect();
        let describe = format!("restart {plugin} on {}", [renumbered.clone(), lacking].concat().join(", "));
        let mut work = HostWork::new(vec![Box::new(Command::new(describe, script))])
            .needs(slots::initialised_slot())
            .needs(slots::nodes_registered_slot())
            .needs(slots::node_tools_slot(&inputs.api_host.name));
        for node in renumbered.iter().filter(|_| self.forget.is_some()) {
            work = work.needs(slots::range_forgotten_slot(node));
        }
        task.on(&inputs.api_host.name, work.provides(slots::plugin_restarted_slot()))
    }

    /// A kubelet notices some seconds late what its runtime lacks, and the API later still: a node would be Ready, then not, then
    /// Ready again. A report of a kubelet that was restarted afterwards is reliable.
    fn report(&self, inputs: &Inputs, nodes: &Nodes) -> Task {
        let mut task = Task::new("restart_kubelets", "Restart kubelets on nodes that had no network");
        let tests: Vec<String> = self.writes.iter().map(|path| format!("[ -e {} ]", quote(path))).collect();
        let script = format!(
            "echo {} >condition\nkk_wait 120 0.5 'waited until {} has written its files'\nsystemctl restart kubelet.service",
            quote(&tests.join(" && ")),
            self.plugin
        );
        for host in nodes.lacking.iter().copied() {
            let restart = Command::new("restart the kubelet when the network is there", script.as_str());
            let work = HostWork::new(vec![Box::new(restart), Box::new(nodes::is_ready_again(inputs, host))])
                .needs(slots::plugin_restarted_slot())
                .provides(slots::network_back_slot(&host.name));
            task = task.on(&host.name, work);
        }
        task
    }

    /// The nodes on which files of the plugin are missing.
    pub(super) fn lacking<'a>(&self, inputs: &Inputs<'a>) -> Vec<&'a Host> {
        let lacks = |(host, facts): &(&Host, &Facts)| self.lacks(inputs, host, facts);
        inputs.nodes().into_iter().filter(lacks).map(|(host, _)| host).collect()
    }

    /// Whether the plugin runs in the cluster, but one of its files is missing on this node.
    fn lacks(&self, inputs: &Inputs, host: &Host, facts: &Facts) -> bool {
        let runs = inputs.state.workloads.contains_key(&format!("{}/{}", self.namespace, self.daemon_set));
        let is_node = inputs.has_joined(host) && inputs.is_registered(host);
        runs && is_node && self.writes.iter().any(|path| !facts.files.contains_key(*path))
    }
}

/// Whether the node has joined but the API does not list it.
fn was_deleted(inputs: &Inputs, host: &Host) -> bool {
    inputs.state.answered && inputs.has_joined(host) && !inputs.is_registered(host)
}

#[cfg(test)]
mod tests {
    use kk_engine::{FileFact, Plan};

    use super::*;
    use crate::{
        base::cluster_state::{API, INITIALISED},
        capabilities::{
            kube_proxy::services::SERVICES,
            network::flannel::{AGENT, links::LINKS},
        },
        commands::create_cluster,
        testing::{self, KUBERNETES},
    };

    /// The answer of each node about its links.
    const WELL: &str = "subnet\t10.9.0.1/24\nroutes\t2\npeer\t10.9.1.0\tok\n";
    const SERVICES_WELL: &str = "dns\tok\napi\tok\n";

    /// The tasks planned for flannel on three nodes if this node is damaged.
    async fn planned(registered: bool, lost: &str) -> Vec<String> {
        plan(registered, lost, WELL, SERVICES_WELL).await.0
    }

    /// The tasks of the network, and the tasks of kube-proxy and of the verification, if the third node gives these answers about
    /// its links and about Services.
    async fn plan(registered: bool, lost: &str, links: &str, services: &str) -> (Vec<String>, Vec<String>) {
        let spec = testing::sample("three-nodes.yaml");
        let spoiled = spec.hosts[2].name.clone();
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        let mut probed = testing::fresh(&spec);
        let number = |host: &Host| spec.hosts.iter().position(|other| other.name == host.name).unwrap();
        let node = |host: &Host| {
            format!("Node\t{}\tTrue\t{KUBERNETES}\t\t\t\t\t\t10.9.{}.0/24 \n", host.name, number(host))
        };
        let nodes: String =
            spec.hosts.iter().filter(|host| registered || host.name != spoiled).map(node).collect();
        for (name, facts) in &mut probed.facts {
            let host = spec.hosts.iter().find(|host| host.name == *name).unwrap();
            facts.reply(&INITIALISED, "yes");
            facts.reply(
                &API,
                format!("{nodes}DaemonSet\tkube-flannel/kube-flannel-ds\t3\t3\nDaemonSet\tkube-system/kube-proxy\t3\t3\nend\n"),
            );
            let joined = ["/etc/kubernetes/kubelet.conf", "/etc/kubernetes/pki/ca.crt"];
            for path in joined.iter().chain(AGENT.writes).filter(|path| *name != spoiled || **path != lost) {
                facts.files.insert((*path).into(), FileFact { sha256: "same".into(), ..FileFact::default() });
            }
            let own = format!("10.9.{}.1/24", number(host));
            let said = if *name == spoiled { links } else { WELL };
            facts.reply(&LINKS, said.replace("10.9.0.1/24", &own));
            facts.reply(&SERVICES, if *name == spoiled { services } else { SERVICES_WELL });
        }
        let inputs = session.create_inputs(&probed).await.unwrap();
        let plan = Plan::new(create_cluster::pipeline(&inputs).unwrap(), &probed.facts).unwrap();
        let of = |modules: &[&str]| {
            let changes = plan.changes().into_iter().filter(|task| modules.contains(&task.module.as_str()));
            changes.map(|task| task.task).collect::<Vec<_>>()
        };
        (of(&["network"]), of(&["kube-proxy"]))
    }

    #[tokio::test]
    async fn what_a_node_says_of_its_links_is_repaired_on_it() {
        let node = |text: &str| format!("subnet\t10.9.0.1/24\n{text}");
        for (links, wanted) in [
            (WELL.to_owned(), &[][..]),
            (node("agent\tthe link flannel.1 is not there\nroutes\t2\n"), &["restart_flannel"]),
            (node("routes\t1\n"), &["restart_flannel"]),
            (node("bridge\tthe link cni0 is not there\nroutes\t2\n"), &["prepare_nodes"]),
            (
                node("range\tthe link cni0 has 10.88.0.1/24\nroutes\t2\n"),
                &["prepare_nodes", "restart_flannel"],
            ),
            ("subnet\t10.9.7.1/24\nroutes\t2\n".to_owned(), &["prepare_nodes", "restart_flannel"]),
            // Values that cannot be compared count as equal.
            ("subnet\tfd00::1/64\nroutes\t2\n".to_owned(), &[]),
            // Both nodes reach the pods of CoreDNS, so a firewall may block these packets.
            (node("routes\t2\npeer\t10.9.1.0\ttimed out\n"), &[]),
        ] {
            assert_eq!(plan(true, "", &links, SERVICES_WELL).await.0, wanted, "{links}");
        }
        let silent = node("routes\t2\npeer\t10.9.1.0\ttimed out\n");
        let no_dns = "dns\ttimed out\napi\tok\n";
        assert_eq!(plan(true, "", &silent, no_dns).await.0, ["restart_flannel"]);
    }

    #[tokio::test]
    async fn kube_proxy_starts_again_where_the_api_does_not_answer_by_its_service() {
        for (services, wanted) in [
            (SERVICES_WELL, &[][..]),
            ("dns\ttimed out\napi\trefused\n", &["restart_kube_proxy", "wait_for_services"]),
            ("dns\ttimed out\napi\tok\n", &[]),
            ("", &[]),
        ] {
            assert_eq!(plan(true, "", WELL, services).await.1, wanted, "{services}");
        }
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
