//! The pipelines as people see them in a dry run, and the files that they put on hosts.

use kk_artifact::Component;
use kk_engine::Plan;

use crate::{
    Options, Probed,
    cluster_state::{API, INITIALISED},
    kubeadm, pipelines, precheck, testing,
};

/// The plan of a create on these hosts: a line a task and host, the changes behind it.
async fn plan_of(spec: kk_config::Spec, spoil: impl Fn(&mut kk_engine::Facts)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut probed = testing::fresh(&spec);
    probed.facts.values_mut().for_each(spoil);
    let session = testing::session(spec, folder.path());
    let inputs = session.create_inputs(&probed).await.unwrap();
    let plan = Plan::new(pipelines::create_cluster::pipeline(&inputs).unwrap(), &probed.facts).unwrap();
    let text = serde_json::to_string_pretty(&plan.changes()).unwrap();
    text.replace(&folder.path().display().to_string(), "<workdir>")
}

#[tokio::test]
async fn three_fresh_hosts_get_everything() {
    insta::assert_snapshot!(plan_of(testing::sample("three-nodes.yaml"), |_| {}).await);
}

#[tokio::test]
async fn every_sample_can_be_planned() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config-samples");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let plan = plan_of(testing::sample(&name), |_| {}).await;
        assert!(plan.contains("kubeadm init"), "{name}");
    }
}

#[tokio::test]
async fn an_odd_host_changes_the_plan_where_it_must() {
    let even = plan_of(testing::sample("all-in-one.yaml"), |_| {}).await;
    let odd = plan_of(testing::sample("all-in-one.yaml"), |facts| {
        facts.swaps = vec!["/dev/sda2".into()];
        facts.selinux = "enforcing".into();
        facts.hostname = "localhost".into();
    })
    .await;
    for change in ["disable_swap", "relax_selinux", "set the host name to"] {
        assert!(!even.contains(change) && odd.contains(change), "{change}");
    }
}

#[tokio::test]
async fn a_program_restarts_in_the_run_that_changes_its_settings() {
    let file = kk_engine::FileFact { sha256: "same".into(), ..kk_engine::FileFact::default() };
    let plan = plan_of(testing::sample("all-in-one.yaml"), |facts| {
        for unit in ["etcd.service", "containerd.service", "kubelet.service"] {
            let running = kk_engine::UnitFact { active: true, ..kk_engine::UnitFact::default() };
            facts.units.insert(unit.into(), running);
        }
        for path in ["/etc/kubernetes/kubelet.conf", "/etc/kubernetes/pki/ca.crt"] {
            facts.files.insert(path.into(), file.clone());
        }
    })
    .await;
    for change in ["restart etcd.service", "restart containerd.service", "restart kubelet.service"] {
        assert!(plan.contains(change), "{change}: {plan}");
    }
}

/// The plan of a delete on these hosts.
fn delete_of(
    spec: &kk_config::Spec,
    probed: &Probed,
    remove_runtime: bool,
) -> Result<Plan, crate::BuildError> {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { remove_runtime, ..Options::default() };
    testing::session_with(spec.clone(), directory.path(), options)
        .plan_delete(probed)
        .map(|delete| delete.plan)
}

/// Fresh hosts on which all have this record.
fn recorded(spec: &kk_config::Spec, lines: &[&str]) -> Probed {
    let mut probed = testing::fresh(spec);
    for facts in probed.facts.values_mut() {
        facts.owned = lines.to_vec().into();
    }
    probed
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
fn a_delete_does_not_end_a_cluster_of_somebody_else() {
    let spec = testing::sample("all-in-one.yaml");
    let mut probed = testing::fresh(&spec);
    for facts in probed.facts.values_mut() {
        facts.files.insert("/etc/kubernetes/kubelet.conf".into(), kk_engine::FileFact::default());
    }
    let error = delete_of(&spec, &probed, true).err().unwrap().to_string();
    assert!(error.contains("a cluster that kk did not make"), "{error}");
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
                facts.reply(&crate::capabilities::os::identity::TOKEN, "prod\n");
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

#[tokio::test]
async fn a_delete_spares_a_namesake_of_the_cluster() {
    let spec = testing::sample("all-in-one.yaml");
    let directory = tempfile::tempdir().unwrap();
    let session = testing::session(spec.clone(), directory.path());
    let fresh = testing::fresh(&spec);
    let inputs = session.create_inputs(&fresh).await.unwrap();
    inputs.pki.save().unwrap();
    let ours = inputs.pki.ca_sum();
    for (ca, spared) in [(ours.as_str(), false), ("another", true)] {
        let probed = recorded(&spec, &[&format!("cluster\t{}\t{ca}\t-", spec.name)]);
        assert_eq!(session.plan_delete(&probed).is_err(), spared, "{ca}");
    }
}

/// Without the file's permission to configure the operating system, its own settings stay, and the cluster comes up.
#[tokio::test]
async fn a_host_that_is_configured_by_other_means_gets_what_the_cluster_needs() {
    let mut spec = testing::sample("all-in-one.yaml");
    spec.system.skip_configure_os = true;
    let plan = plan_of(spec, |facts| facts.selinux = "enforcing".into()).await;
    for task in ["record_identity", "write_hosts_block", "create_users", "create_directories"] {
        assert!(plan.contains(task), "{task}: {plan}");
    }
    for task in ["disable_swap", "relax_selinux", "load_kernel_modules", "apply_sysctls", "raise_limits"] {
        assert!(!plan.contains(task), "{task}");
    }
}

#[tokio::test]
async fn network_manager_is_told_of_the_interfaces_of_pods_where_it_runs() {
    let plan = |active| {
        plan_of(testing::sample("all-in-one.yaml"), move |facts| {
            let unit = kk_engine::UnitFact { active, ..Default::default() };
            facts.units.insert("NetworkManager.service".into(), unit);
        })
    };
    assert!(!plan(false).await.contains("NetworkManager"));
    let plan = plan(true).await;
    for change in ["write /etc/NetworkManager/conf.d/99-kubekey.conf", "reload NetworkManager.service"] {
        assert!(plan.contains(change), "{change}: {plan}");
    }
}

#[tokio::test]
async fn what_a_boot_would_bring_back_is_changed_where_it_comes_from() {
    use crate::capabilities::os::{disable_swap::UNITS, write_hosts_block::REWRITTEN};
    for (rewritten, changed) in [("no\n", false), ("yes\n", true)] {
        let plan = plan_of(testing::sample("all-in-one.yaml"), |facts| {
            facts.reply(&UNITS, "dev-zram0.swap\n");
            facts.reply(&REWRITTEN, rewritten);
            let template = "/etc/cloud/templates/hosts.debian.tmpl".to_owned();
            facts.files.insert(template, kk_engine::FileFact::default());
        })
        .await;
        assert!(plan.contains("mask dev-zram0.swap"), "{plan}");
        assert_eq!(plan.contains("write a block into /etc/cloud/templates/hosts.debian.tmpl"), changed);
    }
}

/// A file without pins, on a cluster that another kk has made.
#[tokio::test]
async fn a_cluster_keeps_its_versions_unless_the_file_names_others() {
    use crate::capabilities::versions::RECORDED;
    let directory = tempfile::tempdir().unwrap();
    let plan = async |pin: Option<&str>, minor: u32| {
        let mut spec = testing::sample("all-in-one.yaml");
        spec.components.etcd = pin.map(str::to_owned);
        let note = format!("kubernetes: \"v1.{minor}.0\"\netcd: \"3.6.1\"\npause: \"3.9\"\n");
        let mut probed = testing::fresh(&spec);
        probed.facts.values_mut().for_each(|facts| facts.reply(&RECORDED, note.clone()));
        let session = testing::session(spec, directory.path());
        let inputs = session.create_inputs(&probed).await.unwrap();
        let found = precheck::precheck(&pipelines::create_cluster::capabilities(inputs.spec), &inputs);
        let found = found.iter().map(|finding| finding.message.clone()).collect::<Vec<_>>().join("\n");
        (
            inputs.versions.of(Component::Etcd),
            inputs.images.of(Component::Pause),
            inputs.programs.clone(),
            found,
        )
    };
    let minor = testing::sample("all-in-one.yaml").kubernetes.version.minor;
    let (etcd, pause, programs, found) = plan(None, minor).await;
    assert_eq!((etcd.as_str(), pause.as_str()), ("3.6.1", "registry.k8s.io/pause:3.9"));
    assert!(programs.values().any(|(artifact, _)| artifact.to_string().contains("3.6.1")));
    assert!(found.contains("a new cluster would get other versions: etcd") && found.contains("(here 3.6.1)"));
    let (etcd, _, _, found) = plan(Some("3.6.2"), minor).await;
    assert!(etcd == "3.6.2" && !found.contains("etcd"), "{found}");
    let (_, _, _, found) = plan(Some("3.5.9"), minor).await;
    assert!(found.contains("the cluster has etcd 3.6.1, the file says an older one"), "{found}");
    let (etcd, ..) = plan(None, minor - 1).await;
    assert_ne!(etcd, "3.6.1", "another minor version of Kubernetes has versions of its own");
}

#[tokio::test]
async fn versions_that_cannot_be_read_are_not_replaced() {
    let spec = testing::sample("all-in-one.yaml");
    let directory = tempfile::tempdir().unwrap();
    let mut probed = testing::fresh(&spec);
    probed.facts.values_mut().for_each(|facts| facts.time_out(&crate::capabilities::versions::RECORDED));
    let session = testing::session(spec, directory.path());
    let inputs = session.create_inputs(&probed).await.unwrap();
    let found = precheck::precheck(&pipelines::create_cluster::capabilities(inputs.spec), &inputs);
    assert_eq!(found[0].severity, kk_engine::Severity::Error);
    assert!(found[0].message.contains("cannot be read: no answer within 20 s"), "{}", found[0].message);
}

#[test]
fn a_delete_sets_selinux_to_enforcing_where_it_was() {
    let spec = testing::sample("all-in-one.yaml");
    for (line, enforces) in [("saved\t/etc/selinux/config", true), ("made\t/etc/etcd.env", false)] {
        let probed = recorded(&spec, &[line]);
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        let pipeline = pipelines::delete_cluster::pipeline(&session.delete_inputs(&probed).unwrap());
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

/// The plan for hosts that all have joined, with these answers of their disks and of the API.
async fn plan_of_joined(disk: &str, api: &str) -> String {
    let file = kk_engine::FileFact { sha256: "same".into(), ..kk_engine::FileFact::default() };
    plan_of(testing::sample("three-nodes.yaml"), |facts| {
        facts.reply(&INITIALISED, disk);
        facts.time_out(&API);
        if !api.is_empty() {
            facts.reply(&API, api);
        }
        let running = kk_engine::UnitFact { active: true, ..kk_engine::UnitFact::default() };
        facts.units.insert("kubelet.service".into(), running);
        for path in ["/etc/kubernetes/kubelet.conf", "/etc/kubernetes/pki/ca.crt"] {
            facts.files.insert(path.into(), file.clone());
        }
    })
    .await
}

const ANSWERED: &str = "ConfigMap\tkube-system/kubeadm-config\nConfigMap\tkube-public/cluster-info\nend\n";

#[tokio::test]
async fn only_an_init_that_did_not_end_is_done_again() {
    for (disk, api, again, waits, publishes) in [
        ("no", "none", true, false, false),
        ("no", "end\n", true, false, false),
        ("no", ANSWERED, false, false, false),
        ("yes", "end\n", false, false, true),
        ("yes", ANSWERED, false, false, false),
        // The API is down.
        ("yes", "", false, true, false),
    ] {
        let plan = plan_of_joined(disk, api).await;
        assert_eq!(plan.contains("(kubeadm init)"), again, "{disk} {api}");
        assert_eq!(plan.contains("wait until the API answers"), waits, "{disk} {api}");
        assert_eq!(plan.contains("write the manifests of the control plane"), waits, "{disk} {api}");
        assert_eq!(plan.contains("publish the settings of the cluster"), publishes, "{disk} {api}");
    }
}

#[tokio::test]
async fn kube_proxy_masquerades_all_in_every_mode() {
    for (mode, section) in [("iptables", "iptables:"), ("ipvs", "iptables:"), ("nftables", "nftables:")] {
        let mut spec = testing::sample("all-in-one.yaml");
        spec.kubernetes.proxy_mode = match mode {
            "ipvs" => kk_config::ProxyMode::Ipvs,
            "nftables" => kk_config::ProxyMode::Nftables,
            _ => kk_config::ProxyMode::Iptables,
        };
        spec.kubernetes.masquerade_all = true;
        let folder = tempfile::tempdir().unwrap();
        let facts = testing::fresh(&spec);
        let session = testing::session(spec, folder.path());
        let text = kubeadm::cluster_documents(&session.create_inputs(&facts).await.unwrap());
        let (_, after) = text.split_once(&format!("\n{section}\n")).unwrap();
        assert!(after.starts_with("  masqueradeAll: true"), "{mode}: {text}");
    }
}

#[tokio::test]
async fn a_cluster_that_was_ready_is_verified_after_a_change() {
    let spec = testing::sample("three-nodes.yaml");
    let node = |host: &kk_config::Host| format!("Node\t{}\tTrue\tv1.36.4\t\t\n", host.name);
    let nodes = spec.hosts.iter().map(node).collect::<Vec<_>>().concat();
    let ready = format!(
        "{nodes}DaemonSet\tkube-system/kube-proxy\t1\t1\nDaemonSet\tkube-flannel/kube-flannel-ds\t1\t1\n\
         Deployment\tkube-system/coredns\t1\t1\n{ANSWERED}"
    );
    let plan = plan_of_joined("yes", &ready).await;
    assert!(plan.contains("restart kubelet.service"), "{plan}");
    assert!(plan.contains("\"wait_until_ready\"") && plan.contains("\"ask_pods\""), "{plan}");
}

/// Documents for kubeadm of one version, with settings of the user's in every place.
async fn documents(version: &str) -> String {
    let text = format!(
        "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: t}}\nspec:\n  hosts:\n  \
         - {{name: a, address: 192.0.2.1}}\n  - {{name: b, address: 192.0.2.2}}\n  roleGroups: {{etcd: [a], control-plane: [a], worker: [b]}}\n  \
         kubernetes:\n    version: {version}\n    maxPods: 50\n    apiserverArgs: [\"max-requests-inflight=800\"]\n    \
         featureGates: {{NodeSwap: true}}\n    kubeletConfiguration: {{evictionHard: {{memory.available: 100Mi}}}}\n    \
         apiserverCertExtraSans: [api.example.org]\n"
    );
    let spec = testing::spec(&text);
    let folder = tempfile::tempdir().unwrap();
    let facts = testing::fresh(&spec);
    let session = testing::session(spec, folder.path());
    let inputs = session.create_inputs(&facts).await.unwrap();
    let token = kubeadm::Token { id: "abcdef".into(), secret: kk_config::Secret::new("0123456789abcdef") };
    let [first, second] = [&inputs.spec.hosts[0], &inputs.spec.hosts[1]];
    format!(
        "{}\n# join\n{}\n# discovery\n{}",
        kubeadm::init_documents(&inputs, first, &token),
        kubeadm::join_document(&inputs, second, &token, "discovery.conf"),
        kubeadm::discovery_kubeconfig(&inputs.endpoint(), "CA", &token),
    )
}

#[tokio::test]
async fn kubeadm_gets_documents_of_its_version() {
    for version in ["v1.28.15", "v1.30.14", "v1.31.14", "v1.36.4"] {
        let documents = documents(version).await;
        insta::assert_snapshot!(format!("kubeadm_{version}"), documents);
    }
}

/// Capabilities of a create that a delete does not list, and why: what they put on a host is in its record, or goes with
/// another capability.
const NOTHING_TO_REMOVE: [(&str, &str); 7] = [
    ("programs", "files are recorded"),
    ("images", "they are the runtime's data"),
    ("control-plane", "its pods go with the runtime, its files with the node's"),
    ("dns", "its objects go with etcd's data"),
    ("manifests", "objects go with etcd's data"),
    ("versions", "its note goes with the node's files"),
    ("verify", "it changes nothing"),
];

#[test]
fn what_a_create_installs_a_delete_removes() {
    for name in ["three-nodes.yaml", "all-in-one.yaml"] {
        let spec = testing::sample(name);
        let removed = pipelines::delete_cluster::capabilities(&spec);
        for capability in pipelines::create_cluster::capabilities(&spec) {
            let listed = removed.iter().any(|other| other.name() == capability.name());
            let excused = NOTHING_TO_REMOVE.iter().any(|(name, _)| *name == capability.name());
            assert!(listed != excused, "{}", capability.name());
        }
    }
}

/// What every module waits for and what it provides, on one host that has all roles.
#[tokio::test]
async fn modules_wait_for_each_other_only_through_these_slots() {
    let spec = testing::sample("all-in-one.yaml");
    let directory = tempfile::tempdir().unwrap();
    let (session, fresh) = (testing::session(spec.clone(), directory.path()), testing::fresh(&spec));
    let inputs = session.create_inputs(&fresh).await.unwrap();
    let words =
        |keys: &[kk_engine::SlotKey]| keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let mut lines = Vec::new();
    for module in pipelines::create_cluster::pipeline(&inputs).unwrap().modules {
        lines.push(module.name.to_owned());
        for task in &module.tasks {
            for work in task.hosts.values() {
                let slots = [("needs", &work.needs), ("after", &work.after), ("provides", &work.provides)];
                for (verb, keys) in slots.into_iter().filter(|(_, keys)| !keys.is_empty()) {
                    lines.push(format!("  {} {verb} {}", task.name, words(keys)));
                }
            }
        }
    }
    insta::assert_snapshot!(lines.join("\n"));
}
