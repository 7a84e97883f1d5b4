//! `kk add nodes`.

use super::{
    create_cluster,
    session::{Create, Session},
};
use crate::{
    base::{
        error::BuildError,
        findings::{Findings, Setting},
        probed::Probed,
    },
    capabilities::{etcd::membership, nodes::record_joins},
    model::{
        cluster::{Cluster, Scope},
        command::Command,
        inputs::Inputs,
    },
};

impl Session {
    /// The plan for the nodes of the file that are not in the cluster, with its findings.
    ///
    /// # Errors
    /// The plan cannot be built.
    pub async fn plan_add(&self, probed: &Probed) -> Result<Create, BuildError> {
        let (inputs, mut found) = (self.inputs_for(Command::AddNodes, probed).await?, Findings::default());
        settings_of_others(&inputs, &mut found);
        Box::pin(self.plan_within(inputs, found, probed, scope)).await
    }
}

/// The nodes of the file that are not in the cluster: they get everything that a create does. The names of new hosts are added on
/// the existing hosts, and the cluster gets the settings that depend on the number of nodes; existing hosts are neither restarted
/// nor repaired.
pub(crate) fn scope(cluster: &Cluster) -> Scope {
    let is_new = |host: &&kk_config::Host| {
        host.is_node() && record_joins::is_unfinished(cluster, host) || membership::is_new(cluster, host)
    };
    Scope::Hosts(cluster.spec.hosts.iter().filter(is_new).map(|host| host.name.clone()).collect())
}

/// Reports settings that existing hosts cannot change but the file changes: new hosts would get the new values, and no file would
/// fit all hosts.
pub(crate) fn settings_of_others(inputs: &Inputs, found: &mut Findings) {
    let Scope::Hosts(new) = scope(inputs) else { return };
    let of_others = |setting: &Setting| setting.host.as_ref().is_some_and(|host| !new.contains(host));
    for capability in create_cluster::capabilities(inputs.spec) {
        let settings = capability.immutable(inputs).into_iter().filter(of_others);
        found.0.extend(settings.filter_map(Setting::finding));
    }
}

/// Reports nodes that stay unchanged although they are not Ready.
pub(crate) fn name_sick_neighbours(inputs: &Inputs, found: &mut Findings) {
    let sick =
        |host: &&kk_config::Host| host.is_node() && inputs.facts(host).is_some() && !inputs.is_ready(host);
    for host in inputs.outside().filter(sick).filter(|_| inputs.state.answered) {
        found.warning(Some(host), "it is not Ready; kk does not change it", "kk create cluster repairs it");
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use kk_config::Spec;
    use kk_engine::{Action as _, Facts, FileFact, Severity, UnitFact, actions::File};

    use crate::{
        base::{
            cluster_state::{API, INITIALISED},
            host_layout,
            probed::Probed,
            slots,
        },
        capabilities::{etcd::DATA, runtime::ROOT},
        commands::{
            create_cluster,
            session::{Create, Session},
        },
        model::kubeadm,
        testing,
    };

    pub(crate) const ANSWERED: &str =
        "ConfigMap\tkube-system/kubeadm-config\nConfigMap\tkube-public/cluster-info\nend\n";

    /// A running control plane with etcd and a running worker, and a control plane and a worker that are new in the file.
    pub(crate) fn spec() -> Spec {
        with_etcd_on("n1")
    }

    pub(crate) fn with_etcd_on(members: &str) -> Spec {
        let host = |n| format!("  - {{name: n{n}, address: 192.0.2.{n}}}\n");
        let hosts = (1..5).map(host).collect::<Vec<_>>().concat();
        testing::spec(&format!(
            "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: t}}\nspec:\n  hosts:\n{hosts}  \
             roleGroups: {{etcd: [{members}], control-plane: [n1, n3], worker: [n2, n4]}}\n  controlPlaneEndpoint: {{address: 192.0.2.1}}\n"
        ))
    }

    pub(crate) fn joined(facts: &mut Facts) {
        let file = FileFact { sha256: "same".into(), ..FileFact::default() };
        for path in ["/etc/kubernetes/kubelet.conf", "/etc/kubernetes/pki/ca.crt"] {
            facts.files.insert(path.into(), file.clone());
        }
        facts.units.insert("kubelet.service".into(), UnitFact { active: true, ..UnitFact::default() });
    }

    /// The hosts, and the state that the first control plane has applied.
    pub(crate) async fn probed(session: &Session, api: Option<&str>) -> Probed {
        let mut probed = testing::fresh(session.spec());
        for name in ["n1", "n2"] {
            joined(probed.facts.get_mut(name).unwrap());
        }
        let notes = {
            let inputs = session.create_inputs(&probed).await.unwrap();
            let host = &session.spec().hosts[0];
            [
                ("cluster.yaml", kubeadm::control_plane_documents(&inputs, host)),
                ("kubelet-cluster.yaml", kubeadm::kubelet_document(&inputs)),
            ]
        };
        let first = probed.facts.get_mut("n1").unwrap();
        for (name, text) in notes {
            let path = format!("/etc/kubernetes/kubekey/{name}");
            let [kind, mode, owner] = ["file", "644", "root:root"].map(str::to_owned);
            let sha256 = kk_util::sha256(text.as_bytes());
            first.files.insert(path.clone(), FileFact { sha256, kind, mode, owner, ..FileFact::default() });
            assert!(!File::text(path, text).check(first).is_needed());
        }
        for name in ["sa.key", "sa.pub", "front-proxy-ca.crt", "front-proxy-ca.key"] {
            first.files.insert(format!("/etc/kubernetes/pki/{name}"), FileFact::default());
        }
        first.files.insert("/etc/kubernetes/manifests/kube-apiserver.yaml".into(), FileFact::default());
        first.reply(&INITIALISED, "yes");
        first.reply(&DATA, "yes");
        match api {
            Some(api) => first.reply(&API, api),
            None => first.time_out(&API),
        }
        probed
    }

    fn errors(add: &Create) -> Vec<&str> {
        let errors = add.findings.iter().filter(|finding| finding.severity == Severity::Error);
        errors.map(|finding| finding.message.as_str()).collect()
    }

    #[tokio::test]
    async fn only_new_nodes_change_and_the_others_learn_their_names() {
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec(), directory.path());
        let probed = probed(&session, Some(ANSWERED)).await;
        let add = session.plan_add(&probed).await.unwrap();
        let names: Vec<_> = add.joining.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, ["n3", "n4"]);
        let tasks = |name: &str| -> Vec<String> {
            let of_host = add.plan.changes().into_iter().filter(|task| task.host == name);
            of_host.map(|task| task.task).collect()
        };
        assert_eq!(tasks("n2"), ["write_hosts_block"]);
        assert_eq!(
            tasks("n1"),
            [
                "write_hosts_block",
                "publish_settings",
                "open_for_joins",
                "share_certificates",
                "wait_for_nodes",
                "set_labels",
                "close_for_joins",
                "apply_manifests",
                "record_objects",
                "save_kubeconfig",
                "wait_until_ready",
                "remove_probe_service"
            ]
        );
        assert!(tasks("n3").contains(&"join_control_plane".to_owned()));
        assert!(tasks("n4").contains(&"join_worker".to_owned()));
    }

    /// A new member of etcd makes the API server of n1 restart.
    #[tokio::test]
    async fn nobody_joins_while_an_api_server_restarts() {
        let directory = tempfile::tempdir().unwrap();
        let before = testing::session(spec(), directory.path());
        let mut probed = probed(&before, Some(ANSWERED)).await;
        let first = probed.facts.get_mut("n1").unwrap();
        first.reply(&DATA, "yes");
        first.reply(&crate::base::questions::SETTINGS, "etcd-servers\thttps://192.0.2.1:2379\n");
        for (members, waits) in [("n1", false), ("n1, n3", true)] {
            let session = testing::session(with_etcd_on(members), directory.path());
            let mut inputs = session.create_inputs(&probed).await.unwrap();
            inputs.scope = super::scope(&inputs);
            let pipeline = create_cluster::pipeline(&inputs).unwrap();
            let applied = slots::settings_applied_slot("n1");
            let tasks: Vec<_> = pipeline.modules.iter().flat_map(|module| &module.tasks).collect();
            for (task, host) in [("join_control_plane", "n3"), ("join_worker", "n4")] {
                let task = tasks.iter().find(|one| one.name == task).unwrap();
                assert_eq!(task.hosts[host].needs.contains(&applied), waits, "{host}");
            }
            let provides = |task: &&&kk_engine::Task| {
                task.hosts.get("n1").is_some_and(|work| work.provides.contains(&applied))
            };
            assert_eq!(tasks.iter().filter(provides).count(), usize::from(waits));
        }
    }

    #[tokio::test]
    async fn a_node_whose_join_was_not_seen_through_to_its_end_is_still_new() {
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec(), directory.path());
        for marked in [true, false] {
            let mut probed = probed(&session, Some(ANSWERED)).await;
            for name in ["n3", "n4"] {
                joined(probed.facts.get_mut(name).unwrap());
            }
            if marked {
                let n4 = probed.facts.get_mut("n4").unwrap();
                n4.files.insert(host_layout::JOINING.into(), FileFact::default());
            }
            let add = session.plan_add(&probed).await.unwrap();
            let names: Vec<_> = add.joining.iter().map(|host| host.name.as_str()).collect();
            assert_eq!(names, if marked { vec!["n4"] } else { vec![] });
            let tasks: Vec<_> = add.plan.changes().into_iter().map(|task| (task.host, task.task)).collect();
            let has = |host: &str, task: &str| tasks.contains(&(host.to_owned(), task.to_owned()));
            assert!(!has("n4", "join_worker"), "{tasks:?}");
            assert_eq!(has("n4", "record_joins"), marked, "{tasks:?}");
            assert!(!marked || has("n1", "wait_until_ready"), "{tasks:?}");
            let sick: Vec<_> =
                add.findings.iter().filter(|finding| finding.message.contains("not Ready")).collect();
            assert_eq!(sick.len(), if marked { 3 } else { 4 }, "{sick:?}");
        }
    }

    #[tokio::test]
    async fn a_new_node_gets_no_settings_that_the_others_cannot_change() {
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec(), directory.path());
        let of_file = &session.spec().registry.containerd_data_dir;
        for (root, refused) in [(of_file.as_str(), false), ("/srv/containerd", true)] {
            let mut probed = probed(&session, Some(ANSWERED)).await;
            probed.facts.get_mut("n2").unwrap().reply(&ROOT, root);
            let add = session.plan_add(&probed).await.unwrap();
            let said = format!("its containerd data is in /srv/containerd, but the file sets {of_file}");
            assert_eq!(errors(&add).contains(&said.as_str()), refused, "{root}: {:?}", add.findings);
        }
    }

    #[tokio::test]
    async fn a_cluster_that_is_not_there_or_not_as_the_file_says_gets_no_nodes() {
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec(), directory.path());
        let fresh = testing::fresh(session.spec());
        let add = session.plan_add(&fresh).await.unwrap();
        assert!(errors(&add).contains(&"there is no running cluster"));

        let add = session.plan_add(&probed(&session, None).await).await.unwrap();
        assert!(errors(&add).contains(&"its API does not answer"), "{:?}", add.findings);

        let runs = probed(&session, Some(ANSWERED)).await;
        let mut changed = spec();
        changed.kubernetes.max_pods = 77;
        let session = testing::session(changed, directory.path());
        let add = session.plan_add(&runs).await.unwrap();
        assert!(errors(&add).contains(&"the file also changes settings of the cluster"));
    }
}
