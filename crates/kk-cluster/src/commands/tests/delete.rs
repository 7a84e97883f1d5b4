//! Plans of a delete, and the hosts that it refuses.

use std::path::PathBuf;

use kk_engine::{Plan, question::Reply};

use super::recorded;
use crate::{
    base::{probed::Probed, slots},
    capabilities::kubesphere::remove_kubesphere,
    commands::{delete_cluster, session::Session},
    model::options::Options,
    testing,
};

/// The plan of a delete on these hosts.
fn delete_of(
    spec: &kk_config::Spec,
    probed: &Probed,
    remove_runtime: bool,
) -> Result<Plan, crate::base::error::BuildError> {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { remove_runtime, ..Options::default() };
    testing::session_with(spec.clone(), directory.path(), options)
        .plan_delete(probed)
        .map(|delete| delete.plan)
}

#[test]
fn a_delete_leaves_hosts_alone_that_hold_nothing() {
    let spec = testing::sample("three-nodes.yaml");
    let mut probed = testing::fresh(&spec);
    let name = spec.hosts[1].name.clone();
    probed.facts.get_mut(&name).unwrap().owned = vec!["made\t/etc/etcd.env"].into();
    let plan = delete_of(&spec, &probed, true).unwrap();
    assert!(!plan.is_empty());
    for task in plan.changes() {
        assert!(serde_json::to_string(&task).unwrap().contains(&name));
    }
}

#[test]
fn a_delete_without_all_leaves_the_runtime() {
    let spec = testing::sample("all-in-one.yaml");
    let lines = [
        "made\t/usr/local/bin/containerd",
        "made\t/usr/local/bin/containerd-shim-runc-v2",
        "made\t/etc/containerd/config.toml",
        "made\t/usr/local/bin/crictl",
        "unit-on\tcontainerd.service",
        "dir\t/etc/cni/net.d",
    ];
    let probed = recorded(&spec, &lines);
    let plan = |all| delete_of(&spec, &probed, all).unwrap().is_empty();
    assert!(plan(false) && !plan(true));
}

#[test]
fn kube_proxy_removes_its_servers_when_no_kubelet_starts_it_again_and_before_its_container_goes() {
    let spec = testing::sample("all-in-one.yaml");
    let plan = delete_of(&spec, &recorded(&spec, &["made\t/etc/kubernetes"]), false).unwrap();
    let tasks: Vec<String> = plan.changes().iter().map(|task| task.task.clone()).collect();
    let order: Vec<&str> = tasks
        .iter()
        .map(String::as_str)
        .filter(|task| {
            ["stop_kubelet", "remove_virtual_servers", "remove_pods", "remove_kube_proxy"].contains(task)
        })
        .collect();
    assert_eq!(order, ["stop_kubelet", "remove_virtual_servers", "remove_pods", "remove_kube_proxy"]);
}

/// Hosts may store the data of their runtimes in different directories.
#[test]
fn the_data_of_each_runtime_goes_with_it_or_stays() {
    let spec = testing::sample("three-nodes.yaml");
    let roots = ["/srv/a", "/srv/b", ""];
    let of_file = spec.registry.containerd_data_dir.clone();
    let probed = || {
        let mut probed = testing::fresh(&spec);
        for (host, root) in spec.hosts.iter().zip(roots) {
            let facts = probed.facts.get_mut(&host.name).unwrap();
            let data = format!("dir\t{}", if root.is_empty() { &of_file } else { root });
            let (unit, config) =
                ("made\t/etc/systemd/system/containerd.service", "made\t/etc/containerd/config.toml");
            facts.owned = vec![unit, config, data.as_str()].into();
            facts.reply(&crate::capabilities::runtime::ROOT, root);
        }
        probed
    };
    assert!(delete_of(&spec, &probed(), false).unwrap().is_empty());
    let directory = tempfile::tempdir().unwrap();
    let options = Options { remove_runtime: true, ..Options::default() };
    let session = testing::session_with(spec.clone(), directory.path(), options);
    assert!(!session.plan_delete(&probed()).unwrap().plan.is_empty());
    let probed = probed();
    let pipeline = delete_cluster::pipeline(&session.delete_inputs(&probed).unwrap());
    let tasks = pipeline.modules.iter().flat_map(|module| &module.tasks);
    let removes: Vec<_> = tasks.filter(|task| task.name == "remove_containerd").collect();
    for (host, root) in spec.hosts.iter().zip(["/srv/a", "/srv/b", of_file.as_str()]) {
        let kk_engine::Apply::Script(script) =
            removes[0].hosts[&host.name].actions[0].apply(&kk_engine::Facts::default())
        else {
            panic!("no script")
        };
        assert!(script.text.starts_with(&format!("data={root}\n")), "{}", script.text);
    }
    let mut silent = probed;
    silent.facts.get_mut(&spec.hosts[1].name).unwrap().time_out(&crate::capabilities::runtime::ROOT);
    let refused = delete_of(&spec, &silent, true).err().unwrap().to_string();
    assert!(refused.contains("did not report where its container runtime stores its data"), "{refused}");
    assert!(delete_of(&spec, &silent, false).is_ok());
}

#[test]
fn a_delete_removes_the_network_plugin_that_the_file_no_longer_names() {
    let mut spec = testing::sample("all-in-one.yaml");
    spec.network.plugin = kk_config::NetworkPlugin::None;
    let mut probed = recorded(&spec, &["made\t/etc/systemd/system/kubelet.service"]);
    let removes = |probed: &Probed| {
        let plan = delete_of(&spec, probed, true).unwrap();
        plan.changes().iter().any(|task| serde_json::to_string(task).unwrap().contains("remove_flannel"))
    };
    assert!(!removes(&probed));
    for facts in probed.facts.values_mut() {
        facts.owned = vec!["made\t/etc/kubernetes/kubekey/flannel.yaml"].into();
    }
    assert!(removes(&probed));
}

/// A renewal would restart components that are being stopped.
#[test]
fn a_delete_ends_renewals_before_it_cleans_a_host() {
    let spec = testing::sample("all-in-one.yaml");
    let kubelet = "made\t/etc/systemd/system/kubelet.service";
    for (record, stops) in
        [(vec![kubelet], false), (vec![kubelet, "made\t/etc/systemd/system/k8s-certs-renew.timer"], true)]
    {
        let plan = delete_of(&spec, &recorded(&spec, &record), false).unwrap();
        let first = plan.changes().into_iter().next().unwrap().task;
        assert_eq!(first == "stop_renewals", stops, "{record:?} {first}");
    }
}

#[test]
fn a_delete_does_not_end_a_cluster_of_somebody_else() {
    let spec = testing::sample("all-in-one.yaml");
    let mut probed = testing::fresh(&spec);
    for facts in probed.facts.values_mut() {
        facts.files.insert("/etc/kubernetes/kubelet.conf".into(), kk_engine::FileFact::default());
    }
    let error = delete_of(&spec, &probed, true).err().unwrap().to_string();
    assert!(error.contains("a cluster that kk did not create"), "{error}");
    for facts in probed.facts.values_mut() {
        facts.owned = vec!["made\t/etc/systemd/system/kubelet.service"].into();
    }
    assert!(!delete_of(&spec, &probed, true).unwrap().is_empty());
}

#[test]
fn a_delete_is_for_the_cluster_of_the_file_only() {
    let spec = testing::sample("three-nodes.yaml");
    let (name, own) = (spec.name.clone(), format!("cluster\t{}\tca-1\t-", spec.name));
    let other = |record: &[&str], spoil: fn(&mut kk_engine::Facts)| {
        let mut probed = recorded(&spec, &[&own]);
        let facts = probed.facts.get_mut(&spec.hosts[1].name).unwrap();
        facts.owned = record.to_vec().into();
        spoil(facts);
        delete_of(&spec, &probed, true).err().map(|error| error.to_string())
    };
    let other_ca = format!("cluster\t{name}\tca-2\t-");
    let file = |sum: &str| kk_engine::FileFact { sha256: sum.to_owned(), ..Default::default() };
    assert_eq!(other(&[&own], |_| {}), None);
    assert_eq!(other(&["made\t/etc/etcd.env"], |_| {}), None, "an older record, nothing known");
    for (found, said) in [
        (other(&["cluster\tprod\tca-1\t-"], |_| {}), "(cluster prod)"),
        (
            other(&["made\t/etc/etcd.env"], |facts| {
                facts.reply(&crate::capabilities::os::ownership::identity::TOKEN, "prod\n");
            }),
            "(cluster prod)",
        ),
        (other(&[&other_ca], |_| {}), "certificates of 2 clusters"),
    ] {
        let found = found.unwrap();
        assert!(found.contains(said) && found.contains("nothing is removed"), "{found}");
    }
    let mut probed = recorded(&spec, &["made\t/etc/kubernetes/kubelet.conf"]);
    for (facts, sum) in probed.facts.values_mut().zip(["a", "b", "b"]) {
        facts.files.insert("/etc/kubernetes/pki/ca.crt".into(), file(sum));
    }
    assert!(delete_of(&spec, &probed, true).is_err());
}

/// Saves the CA of etcd as a create does. Returns the directory of the cluster on the control machine, and the checksum of the CA.
async fn save_ca(session: &Session) -> (PathBuf, String) {
    let fresh = testing::fresh(session.spec());
    let inputs = session.create_inputs(&fresh).await.unwrap();
    inputs.pki.save().unwrap();
    (inputs.directory.clone(), inputs.pki.ca_sum())
}

#[tokio::test]
async fn a_delete_spares_a_namesake_of_the_cluster() {
    let spec = testing::sample("all-in-one.yaml");
    let directory = tempfile::tempdir().unwrap();
    let session = testing::session(spec.clone(), directory.path());
    let (cluster, ours) = save_ca(&session).await;
    // In the middle of a rotation, the other CA of the cluster is also known, but no further CA.
    let rotation = cluster.join("pki/rotation/etcd-before");
    std::fs::create_dir_all(&rotation).unwrap();
    std::fs::write(rotation.join("ca.pem"), "before").unwrap();
    let before = kk_util::sha256("before");
    for (ca, rotation, spared) in [
        (ours.as_str(), "none", false),
        ("another", "none", true),
        ("another", "2", true),
        (&before, "2", false),
    ] {
        let mut probed = recorded(&spec, &[&format!("cluster\t{}\t{ca}\t-", spec.name)]);
        let facts = probed.facts.get_mut(&spec.hosts[0].name).unwrap();
        facts.reply(&crate::base::questions::ca_rotation::STAGE, rotation);
        assert_eq!(session.plan_delete(&probed).is_err(), spared, "{ca}");
    }
}

/// A delete signs nothing.
#[tokio::test]
async fn a_delete_needs_no_key_of_the_ca() {
    let spec = testing::sample("all-in-one.yaml");
    let directory = tempfile::tempdir().unwrap();
    let session = testing::session(spec.clone(), directory.path());
    let (cluster, ours) = save_ca(&session).await;
    std::fs::remove_file(cluster.join("pki/etcd/ca-key.pem")).unwrap();
    for (ca, spared) in [(ours.as_str(), false), ("another", true)] {
        let probed = recorded(&spec, &[&format!("cluster\t{}\t{ca}\t-", spec.name)]);
        assert_eq!(session.plan_delete(&probed).is_err(), spared, "{ca}");
    }
    let fresh = testing::fresh(&spec);
    let refused = session.create_inputs(&fresh).await.err().unwrap().to_string();
    assert!(refused.contains("ca.pem: its key is missing"), "{refused}");
}

#[test]
fn a_delete_sets_selinux_to_enforcing_where_it_was() {
    let spec = testing::sample("all-in-one.yaml");
    for (line, enforces) in [("saved\t/etc/selinux/config", true), ("made\t/etc/etcd.env", false)] {
        let probed = recorded(&spec, &[line]);
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        let pipeline = delete_cluster::pipeline(&session.delete_inputs(&probed).unwrap());
        let mut text = String::new();
        for work in
            pipeline.modules.iter().flat_map(|module| &module.tasks).flat_map(|task| task.hosts.values())
        {
            for action in &work.actions {
                if let kk_engine::Apply::Script(script) = action.apply(&kk_engine::Facts::default()) {
                    text += &script.text;
                }
            }
        }
        assert_eq!(text.contains("enforce=yes\n"), enforces, "{line}");
        assert_eq!(text.contains("enforce=''\n"), !enforces, "{line}");
    }
}

/// A cluster of three control planes whose API gives these answers about KubeSphere.
fn with_kubesphere(answers: [Option<&str>; 3]) -> (kk_config::Spec, Probed) {
    let host = |n| format!("  - {{name: n{n}, address: 192.0.2.{n}}}\n");
    let hosts = (1..4).map(host).collect::<Vec<_>>().concat();
    let spec = testing::spec(&format!(
        "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: t}}\nspec:\n  hosts:\n{hosts}  \
         kubesphere: {{enabled: true, image: 'hub.example.com/ks:1'}}\n  roleGroups: {{etcd: [n1, n2, n3], control-plane: [n1, n2, n3], worker: [n3]}}\n  controlPlaneEndpoint: {{address: 192.0.2.1}}\n"
    ));
    let mut probed = recorded(&spec, &["made\t/etc/systemd/system/kubelet.service"]);
    for (facts, answer) in probed.facts.values_mut().zip(answers) {
        match answer {
            Some(answer) => facts.reply(&remove_kubesphere::IS_THERE, answer),
            None => facts.time_out(&remove_kubesphere::IS_THERE),
        }
    }
    (spec, probed)
}

#[test]
fn nothing_goes_before_kubesphere() {
    let (spec, probed) = with_kubesphere([None, Some("yes"), Some("yes")]);
    let directory = tempfile::tempdir().unwrap();
    let session = testing::session(spec, directory.path());
    let pipeline = delete_cluster::pipeline(&session.delete_inputs(&probed).unwrap());
    let (first, others) = pipeline.modules.split_first().unwrap();
    assert_eq!(first.tasks[0].hosts.keys().collect::<Vec<_>>(), ["n2"]);
    let works: Vec<_> =
        others.iter().flat_map(|module| &module.tasks).flat_map(|task| task.hosts.values()).collect();
    assert!(!works.is_empty());
    assert!(works.iter().all(|work| work.after.contains(&slots::kubesphere_removed_slot())));
    assert_eq!(session.plan_delete(&probed).unwrap().findings, []);
}

#[test]
fn a_kubesphere_of_which_nothing_is_known_is_named_and_goes_with_the_hosts() {
    for (answers, warned) in [
        ([None, None, None], true),
        ([None, Some("no"), None], false),
        ([Some("dial tcp: connection refused"), None, None], true),
    ] {
        let (spec, probed) = with_kubesphere(answers);
        let directory = tempfile::tempdir().unwrap();
        let delete = testing::session(spec, directory.path()).plan_delete(&probed).unwrap();
        let is_named = delete.findings.iter().any(|finding| finding.message.contains("KubeSphere"));
        assert_eq!(is_named, warned, "{answers:?}");
        assert!(!delete.plan.is_empty());
        assert!(!delete.plan.changes().iter().any(|task| task.task == "remove_kubesphere"));
    }
}

#[test]
fn what_the_api_says_instead_of_kubesphere_is_told() {
    let (spec, mut probed) = with_kubesphere([None, None, None]);
    let refusal = "Error from server (Forbidden): User \"kubernetes-admin\" cannot get path";
    let reply = Reply { code: 1, stderr: refusal.to_owned(), ..Reply::default() };
    probed.facts.values_mut().next().unwrap().replies.insert("kubesphere_is_there".to_owned(), reply);
    let directory = tempfile::tempdir().unwrap();
    let findings = testing::session(spec, directory.path()).plan_delete(&probed).unwrap().findings;
    assert!(findings.iter().any(|finding| finding.message.contains(refusal)), "{findings:?}");
}
