//! `kk delete node`.

use std::collections::BTreeSet;

use kk_config::{Host, Role};
use kk_engine::{CONTROL, Facts, Finding, Module, Pipeline, Plan, Severity, Task};

use super::{
    delete_cluster, running_cluster,
    session::{Create, Delete, Session},
};
use crate::{
    base::{error::BuildError, findings::Findings, probed::Probed, slots},
    capabilities::{
        ca_rotation,
        etcd::remove_member,
        etcd_restore,
        nodes::{LEADS, asked_at},
        os::ownership::{identity, other_run},
    },
    model::{
        capability::Capabilities,
        cluster::{Scope, api_host},
        command::Command,
        inputs::Inputs,
        options::Leaving,
    },
};

impl Session {
    /// Checks that the file contains all hosts that have to leave.
    ///
    /// # Errors
    /// The file does not contain one of them.
    pub fn knows(&self, leaving: &Leaving) -> Result<(), BuildError> {
        let known: Vec<&str> = self.spec.hosts.iter().map(|host| host.name.as_str()).collect();
        match leaving.names.iter().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(BuildError::config(
                format!("the file has no host {name}"),
                format!("name one of its hosts: {}", known.join(", ")),
            )),
        }
    }

    /// The plan that removes hosts from a cluster, which continues without them. Afterwards their traces are removed from the
    /// other hosts: see [`Session::without`].
    ///
    /// # Errors
    /// The file does not contain a name, a host belongs to another cluster, another run works on a host, or the plan cannot be
    /// built.
    pub async fn plan_leave(&self, probed: &Probed, leaving: &Leaving) -> Result<Delete, BuildError> {
        self.knows(leaving)?;
        let session = self.as_installed(probed, |host| leaving.has(host))?;
        let mut inputs = session.inputs_for(Command::Leave, probed).await?;
        let stay = session.spec.control_planes().into_iter().filter(|host| !leaving.has(host));
        let mut found = Findings::default();
        findings(&inputs, leaving, &mut found);
        if stay.clone().next().is_some() {
            let (host, state) = api_host(stay, &inputs.presence);
            inputs = inputs.asked_at(host, state);
            running_cluster::findings(&inputs, &mut found);
        }
        // These checks include the hosts that stay.
        identity::refuse_strangers(&inputs)?;
        other_run::refuse(&inputs)?;
        ca_rotation::findings(&inputs, &mut found);
        etcd_restore::findings(&inputs, &mut found);
        for finding in self.against_forgetting(probed, leaving).await? {
            let is_known = |known: &Finding| {
                (&known.host, known.severity, &known.message)
                    == (&finding.host, finding.severity, &finding.message)
            };
            if !found.0.iter().any(is_known) {
                found.0.push(finding);
            }
        }
        // kk does nothing on a permanently lost host, even if it answers.
        let inputs =
            inputs.within(Scope::Hosts(if leaving.gone { BTreeSet::new() } else { leaving.names.clone() }));
        let scope = delete_cluster::scope(&inputs);
        let inputs = inputs.within(scope);
        let plan = Plan::new(pipeline(&inputs, leaving), &probed.facts)?;
        Ok(Delete { findings: found.0, plan })
    }

    /// The blockers of the second round, from the facts before the first round: after the hosts have left, it is too late to
    /// report them.
    async fn against_forgetting(
        &self,
        probed: &Probed,
        leaving: &Leaving,
    ) -> Result<Vec<Finding>, BuildError> {
        let rest = self.without(leaving)?;
        if rest.spec.control_planes().is_empty() || rest.spec.etcd_hosts().is_empty() {
            return Ok(Vec::new());
        }
        let stays = |host: &&String| !leaving.names.contains(*host);
        let facts = probed.facts.iter().filter(|(host, _)| stays(host));
        let failures = probed.failures.iter().filter(|(host, _)| stays(host));
        let probed = Probed {
            facts: facts.map(|(host, facts)| (host.clone(), facts.clone())).collect(),
            failures: failures.map(|(host, why)| (host.clone(), why.clone())).collect(),
        };
        let Create { mut findings, needed, .. } = Box::pin(rest.plan_forget(&probed)).await?;
        findings.retain(|finding| finding.severity == Severity::Error);
        findings.extend(needed.into_iter().map(|(host, failure)| Finding {
            severity: Severity::Error,
            host: Some(host),
            message: format!("it did not answer: {}", failure.cause),
            hint: failure.hint.unwrap_or_default(),
        }));
        Ok(findings)
    }

    /// The plan that removes the traces of the hosts that have left from the hosts of the file. No node joins. The blockers are
    /// the same as for adding nodes: a control plane that does not respond must not be mistaken for one that was never created.
    ///
    /// # Errors
    /// The plan cannot be built.
    pub async fn plan_forget(&self, probed: &Probed) -> Result<Create, BuildError> {
        // The etcd members of the hosts have left, too.
        let inputs = self.inputs_for(Command::Forget, probed).await?;
        self.plan_within(inputs, Findings::default(), probed, |_| Scope::Hosts(BTreeSet::new())).await
    }
}

/// The hosts leave the cluster, then each of them is cleaned as by `kk delete cluster`. Afterwards their traces are removed from
/// the other hosts, by the pipeline of `kk add nodes` built without them.
pub(crate) fn pipeline(inputs: &Inputs, leaving: &Leaving) -> Pipeline {
    let capabilities: Capabilities = delete_cluster::capabilities(inputs.spec);
    let leave = capabilities.iter().flat_map(|capability| capability.leave(inputs, leaving)).collect();
    let mut modules = vec![Module::new("leave", leave)];
    for capability in capabilities {
        let tasks = capability.remove(inputs).into_iter().map(|task| after_leaving(inputs, task, leaving));
        modules.push(Module::new(capability.name(), tasks.collect()));
    }
    Pipeline::new(modules).outside(inputs.outside().map(|host| host.name.clone()))
}

/// Nothing is removed from a host before it has left the cluster, and the control machine keeps all files of the cluster.
fn after_leaving(inputs: &Inputs, mut task: Task, leaving: &Leaving) -> Task {
    task.hosts.retain(|host, _| host != CONTROL);
    let leaves = |host: &&Host| leaving.has(host) && (host.is_node() || host.has_role(&Role::Etcd));
    for host in inputs.spec.hosts.iter().filter(leaves) {
        if let Some(work) = task.hosts.get_mut(&host.name) {
            work.needs.push(slots::left_slot(&host.name));
        }
    }
    task
}

/// The blockers for the removal of these hosts.
pub(crate) fn findings(inputs: &Inputs, leaving: &Leaving, found: &mut Findings) {
    for host in inputs.spec.hosts.iter().filter(|host| leaving.has(host)) {
        // This applies whatever role the host has now.
        if inputs.endpoint().wanted() == Some(host.internal_address) {
            found.error(
                host,
                "the name of the API resolves to it",
                "set spec.controlPlaneEndpoint.address to another control plane's, and run kk create cluster first",
            );
        }
    }
    still_asked(inputs, leaving, found);
    remove_member::findings(inputs, leaving, found);
    for (role, what) in [(Role::ControlPlane, "control plane"), (Role::Worker, "worker")] {
        let all: Vec<&Host> = inputs.spec.hosts.iter().filter(|host| host.has_role(&role)).collect();
        if !all.is_empty() && all.iter().all(|host| leaving.has(host)) {
            found.error(
                None,
                format!("the cluster would have no {what} left"),
                "add another one first, or delete the whole cluster (kk delete cluster)",
            );
        }
    }
}

/// Reports remaining nodes that use the API on a host that leaves, whatever the file specifies now. A node that does not report
/// which API server it uses may be such a node. If the host is permanently lost, unreachable nodes are no blocker, because it has
/// not served them for a while.
fn still_asked(inputs: &Inputs, leaving: &Leaving, found: &mut Findings) {
    let leaves = |host: &&Host| leaving.has(host) && host.has_role(&Role::ControlPlane);
    if inputs.spec.hosts.iter().any(|host| leaves(&host)) {
        let is_silent = |node: &&Host| !leaving.gone && !leaving.has(node) && inputs.facts(node).is_none();
        for node in inputs.spec.nodes().into_iter().filter(is_silent) {
            found.error(
                node,
                "it did not answer, so it may use the API on a control plane that is removed",
                "repair it first, or remove it first: kk delete node NAME --gone",
            );
        }
        for (node, facts) in inputs.nodes().into_iter().filter(|(node, _)| !leaving.has(node)) {
            found.unanswered(node, &facts.answer(&LEADS), "which API server it uses");
        }
    }
    for host in inputs.spec.hosts.iter().filter(|host| leaving.has(host)) {
        let address = host.internal_address.to_string();
        let asks = |(node, facts): &(&Host, &Facts)| !leaving.has(node) && asked_at(facts).contains(&address);
        let nodes: Vec<&str> =
            inputs.nodes().into_iter().filter(asks).map(|(node, _)| node.name.as_str()).collect();
        if !nodes.is_empty() {
            found.error(
                host,
                format!("its API server is used by {}", nodes.join(", ")),
                "run kk create cluster first: it points them to the controlPlaneEndpoint of the file",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kk_engine::{FileFact, PlannedTask, Severity};

    use super::*;
    use crate::{
        base::{host_layout::RESTORING, questions::SETTINGS},
        capabilities::{
            etcd::{DATA, HEALTHY},
            os::ownership::other_run::LOCK,
        },
        commands::{
            add_nodes::tests::{ANSWERED, probed, spec, with_etcd_on},
            session::Delete,
        },
        model::options::Drain,
        testing,
    };

    /// The plan for the removal of these hosts from a cluster of two control planes, the first with etcd, and two workers.
    async fn planned(names: &[&str], gone: bool, absent: &[&str]) -> Delete {
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec(), directory.path());
        let mut probed = probed(&session, Some(ANSWERED)).await;
        for facts in probed.facts.values_mut() {
            facts.owned = vec!["made\t/etc/systemd/system/kubelet.service"].into();
        }
        for name in absent {
            probed.facts.remove(*name);
            probed.failures.insert((*name).to_owned(), kk_engine::Failure::new("no route to host"));
        }
        session.plan_leave(&probed, &leaving(names, gone)).await.unwrap()
    }

    fn leaving(names: &[&str], gone: bool) -> Leaving {
        Leaving {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            drain: Drain { force: false, timeout: Duration::from_mins(1) },
            gone,
        }
    }

    fn tasks(tasks: &[PlannedTask], host: &str) -> Vec<String> {
        tasks.iter().filter(|task| task.host == host).map(|task| task.task.clone()).collect()
    }

    #[tokio::test]
    async fn only_the_node_that_leaves_changes() {
        let delete = planned(&["n4"], false, &[]).await;
        assert_eq!(delete.findings, []);
        let changes = delete.plan.changes();
        let of_node = tasks(&changes, "n4");
        assert_eq!(of_node[..2], ["drain_n4", "delete_node_n4"]);
        for task in ["stop_kubelet", "remove_virtual_servers", "restore_host"] {
            assert!(of_node.contains(&task.to_owned()), "{task}");
        }
        assert!(changes.iter().all(|task| task.host == "n4"), "{changes:?}");
    }

    /// Three control planes with etcd; the last one leaves.
    #[tokio::test]
    async fn a_member_of_etcd_leaves_when_the_others_go_on_without_it() {
        let host = |n| format!("  - {{name: n{n}, address: 192.0.2.{n}}}\n");
        let hosts = (1..5).map(host).collect::<Vec<_>>().concat();
        let spec = testing::spec(&format!(
            "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: t}}\nspec:\n  hosts:\n{hosts}  \
             roleGroups: {{etcd: [n1, n2, n3], control-plane: [n1, n2, n3], worker: [n4]}}\n  controlPlaneEndpoint: {{address: 192.0.2.1}}\n"
        ));
        for (healthy, refused) in
            [(&["n1", "n2", "n3"][..], false), (&["n1", "n2"], false), (&["n1", "n3"], true)]
        {
            let directory = tempfile::tempdir().unwrap();
            let session = testing::session(spec.clone(), directory.path());
            let mut probed = probed(&session, Some(ANSWERED)).await;
            for (name, facts) in &mut probed.facts {
                facts.owned = vec!["made\t/etc/systemd/system/kubelet.service"].into();
                facts.reply(&DATA, "yes");
                facts.reply(&HEALTHY, if healthy.contains(&name.as_str()) { "yes" } else { "no" });
            }
            let members = [1, 2, 3].map(|n| format!("https://192.0.2.{n}:2379")).join(",");
            probed.facts.get_mut("n1").unwrap().reply(&SETTINGS, format!("etcd-servers\t{members}\n"));
            let delete = session.plan_leave(&probed, &leaving(&["n3"], false)).await.unwrap();
            let errors = delete.findings.iter().filter(|finding| finding.severity == Severity::Error);
            assert_eq!(errors.count() > 0, refused, "{healthy:?}: {:?}", delete.findings);
            let of_node = tasks(&delete.plan.changes(), "n3");
            assert!(
                of_node.contains(&"remove_member_n3".to_owned())
                    && of_node.contains(&"remove_node_files".to_owned())
            );
        }
    }

    #[tokio::test]
    async fn members_without_the_role_in_the_file_are_named_when_a_member_leaves() {
        let host = |n| format!("  - {{name: n{n}, address: 192.0.2.{n}}}\n");
        let hosts = (1..6).map(host).collect::<Vec<_>>().concat();
        // The cluster was created with four members.
        let spec = testing::spec(&format!(
            "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: t}}\nspec:\n  hosts:\n{hosts}  \
             roleGroups: {{etcd: [n1, n2], control-plane: [n1], worker: [n3, n4, n5]}}\n"
        ));
        let said = "it is a member of etcd, but does not have this role in the file";
        let members = [1, 2, 3, 4].map(|n| format!("https://192.0.2.{n}:2379")).join(",");
        for (leaves, gone, api, record, named) in [
            ("n3", false, true, true, &["n3", "n4"][..]),
            ("n3", false, true, false, &["n3", "n4"]),
            ("n3", false, false, true, &["n3", "n4"]),
            ("n3", true, true, false, &["n3", "n4"]),
            ("n2", false, true, true, &["n3", "n4"]),
            // No member leaves.
            ("n5", false, true, true, &[]),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let session = testing::session(spec.clone(), directory.path());
            let mut probed = probed(&session, Some(ANSWERED)).await;
            for (name, facts) in &mut probed.facts {
                let etcd = if name != "n5" && record { "made\t/etc/etcd.env" } else { "" };
                facts.owned = vec!["made\t/etc/systemd/system/kubelet.service", etcd].into();
                if ["n1", "n2"].contains(&name.as_str()) {
                    facts.reply(&DATA, "yes");
                    facts.reply(&HEALTHY, "yes");
                }
            }
            if api {
                probed.facts.get_mut("n1").unwrap().reply(&SETTINGS, format!("etcd-servers\t{members}\n"));
            }
            if gone {
                probed.facts.remove(leaves);
                probed.failures.insert(leaves.to_owned(), kk_engine::Failure::new("no route to host"));
            }
            let delete = session.plan_leave(&probed, &leaving(&[leaves], gone)).await.unwrap();
            let of_them = delete.findings.iter().filter(|finding| finding.message == said);
            let of_them: Vec<&str> = of_them.filter_map(|finding| finding.host.as_deref()).collect();
            assert_eq!(of_them, named, "{leaves} {gone} {api} {record}");
        }
    }

    #[tokio::test]
    async fn a_host_that_is_gone_is_not_asked_for_anything() {
        for absent in [&["n4"][..], &[]] {
            let delete = planned(&["n4"], true, absent).await;
            assert_eq!(tasks(&delete.plan.changes(), "n4"), ["delete_node_n4"]);
        }
    }

    #[tokio::test]
    async fn what_the_cluster_cannot_do_without_stays() {
        for (names, said) in [
            (&["n1"][..], "the cluster would have no member of etcd left"),
            (&["n1"], "the name of the API resolves to it"),
            (&["n1", "n3"], "the cluster would have no control plane left"),
            (&["n2", "n4"], "the cluster would have no worker left"),
        ] {
            let delete = planned(names, false, &[]).await;
            let found: Vec<_> = delete.findings.iter().map(|finding| finding.message.as_str()).collect();
            assert!(found.contains(&said), "{names:?}: {found:?}");
        }
    }

    #[tokio::test]
    async fn a_control_plane_does_not_leave_while_a_node_is_silent() {
        let said = "it did not answer, so it may use the API on a control plane that is removed";
        for (leaves, gone, refused) in [("n3", false, true), ("n3", true, false), ("n2", false, false)] {
            let delete = planned(&[leaves], gone, &["n4"]).await;
            let is_said = |finding: &kk_engine::Finding| finding.message == said;
            assert_eq!(
                delete.findings.iter().any(is_said),
                refused,
                "{leaves} {gone}: {:?}",
                delete.findings
            );
        }
    }

    /// The file may specify another endpoint now, and pods with hostNetwork keep the names from their start.
    #[tokio::test]
    async fn a_control_plane_that_others_ask_stays() {
        for (said, refused) in [
            ("192.0.2.1\nok\n192.0.2.1\n", false),
            ("192.0.2.3\nok\n192.0.2.1\n", true),
            ("192.0.2.1\nok\n192.0.2.3\n", true),
            ("", false),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let session = testing::session(spec(), directory.path());
            let mut probed = probed(&session, Some(ANSWERED)).await;
            for facts in probed.facts.values_mut() {
                facts.owned = vec!["made\t/etc/systemd/system/kubelet.service"].into();
            }
            probed.facts.get_mut("n2").unwrap().reply(&LEADS, said);
            probed.facts.get_mut("n3").unwrap().reply(&LEADS, "192.0.2.3\nok\n192.0.2.3\n");
            let delete = session.plan_leave(&probed, &leaving(&["n3"], false)).await.unwrap();
            let asked = "its API server is used by n2";
            assert_eq!(delete.findings.iter().any(|finding| finding.message == asked), refused, "{said}");
        }
    }

    #[tokio::test]
    async fn a_control_plane_stays_when_a_node_does_not_say_where_it_asks_the_api() {
        for (leaves, refused) in [("n3", true), ("n4", false)] {
            let directory = tempfile::tempdir().unwrap();
            let session = testing::session(spec(), directory.path());
            let mut probed = probed(&session, Some(ANSWERED)).await;
            for facts in probed.facts.values_mut() {
                facts.owned = vec!["made\t/etc/systemd/system/kubelet.service"].into();
            }
            probed.facts.get_mut("n1").unwrap().time_out(&LEADS);
            let delete = session.plan_leave(&probed, &leaving(&[leaves], false)).await.unwrap();
            let said =
                delete.findings.iter().filter(|one| one.message.contains("did not report which API server"));
            assert_eq!(said.count(), usize::from(refused), "{leaves}: {:?}", delete.findings);
        }
    }

    /// Operations in progress on n1, which stays.
    #[tokio::test]
    async fn no_node_leaves_in_the_middle_of_something_else() {
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec(), directory.path());
        let plan = async |begin: fn(&mut kk_engine::Facts)| {
            let mut probed = probed(&session, Some(ANSWERED)).await;
            for facts in probed.facts.values_mut() {
                facts.owned = vec!["made\t/etc/systemd/system/kubelet.service"].into();
            }
            begin(probed.facts.get_mut("n1").unwrap());
            match session.plan_leave(&probed, &leaving(&["n4"], false)).await {
                Ok(delete) => {
                    let errors = delete.findings.into_iter().filter(|one| one.severity == Severity::Error);
                    errors.map(|one| one.message).collect::<Vec<_>>().join("; ")
                }
                Err(error) => error.to_string(),
            }
        };
        assert_eq!(plan(|_| {}).await, "");
        let rotates = plan(|facts| facts.reply(&crate::base::questions::ca_rotation::STAGE, "1")).await;
        assert!(rotates.contains("a CA rotation was started"), "{rotates}");
        let restores = plan(|facts| drop(facts.files.insert(RESTORING.into(), FileFact::default()))).await;
        assert!(restores.contains("a restore of etcd was started"), "{restores}");
        let other = plan(|facts| facts.reply(&LOCK, "busy\n1\nother\nroot@b\n")).await;
        assert!(other.contains("n1: another kk works on it"), "{other}");
    }

    /// The others remove it in a second round, when it has left already.
    #[tokio::test]
    async fn what_speaks_against_the_second_round_is_said_before_the_first() {
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec(), directory.path());
        for (pods, refused) in [("10.9.0.0/16", true), ("10.233.64.0/18", false)] {
            let mut probed = probed(&session, Some(ANSWERED)).await;
            for facts in probed.facts.values_mut() {
                facts.owned = vec!["made\t/etc/systemd/system/kubelet.service"].into();
            }
            let settings = format!("cluster-cidr\t{pods}\n");
            probed.facts.get_mut("n1").unwrap().reply(&SETTINGS, settings);
            let delete = session.plan_leave(&probed, &leaving(&["n4"], false)).await.unwrap();
            let said = delete.findings.iter().filter(|one| one.message.contains("pods are in 10.9.0.0/16"));
            assert_eq!(said.count(), usize::from(refused), "{pods}: {:?}", delete.findings);
        }
    }

    #[tokio::test]
    async fn a_host_with_the_only_member_of_etcd_stays() {
        let spec = testing::spec(
            "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {name: t}\nspec:\n  hosts:\n  \
             - {name: a, address: 192.0.2.1}\n  - {name: b, address: 192.0.2.2}\n  \
             roleGroups: {etcd: [b], control-plane: [a], worker: [a]}\n",
        );
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        let mut probed = testing::fresh(&spec);
        for facts in probed.facts.values_mut() {
            facts.owned = vec!["made\t/etc/etcd.env"].into();
        }
        let delete = session.plan_leave(&probed, &leaving(&["b"], false)).await.unwrap();
        assert!(delete.findings.iter().any(|finding| finding.message.contains("no member of etcd")));
    }

    /// In the second round, a missing answer must not be mistaken for a cluster that does not exist.
    #[tokio::test]
    async fn the_others_forget_a_node_only_in_a_cluster_that_answers() {
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(with_etcd_on("n1, n3"), directory.path());
        let rest = session.without(&leaving(&["n3", "n4"], false)).unwrap();
        for (absent, refused) in [(&[][..], false), (&["n1"], true)] {
            let mut probed = probed(&session, Some(ANSWERED)).await;
            // The API server of n1 still uses the removed member.
            let members = "etcd-servers\thttps://192.0.2.1:2379,https://192.0.2.3:2379\n";
            probed.facts.get_mut("n1").unwrap().reply(&SETTINGS, members);
            for name in ["n3", "n4"].iter().chain(absent) {
                probed.facts.remove(*name);
            }
            for name in absent {
                probed.failures.insert((*name).to_owned(), kk_engine::Failure::new("no route to host"));
            }
            let forget = rest.plan_forget(&probed).await.unwrap();
            let is_error = |finding: &&kk_engine::Finding| finding.severity == kk_engine::Severity::Error;
            let errors: Vec<_> = forget.findings.iter().filter(is_error).collect();
            assert_eq!(!forget.needed.is_empty() && !errors.is_empty(), refused, "{errors:?}");
            assert!(refused || errors.is_empty(), "{errors:?}");
            let joins = forget.plan.changes().into_iter().any(|task| task.task.starts_with("join"));
            assert!(!joins);
        }
    }

    #[tokio::test]
    async fn a_name_that_the_file_does_not_have_is_refused_with_those_that_it_has() {
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec(), directory.path());
        let error =
            session.plan_leave(&testing::fresh(&spec()), &leaving(&["n9"], false)).await.err().unwrap();
        assert_eq!(error.to_string(), "the file has no host n9");
        assert!(error.hint().unwrap().contains("n1, n2, n3, n4"));
    }
}
