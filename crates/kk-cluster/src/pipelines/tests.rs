//! The pipelines as people see them in a dry run, and the files that they put on hosts.

use kk_engine::Plan;

use crate::{kubeadm, modules::removal::Removal, pipelines, testing};

/// The plan of a create on these hosts: a line a task and host, the changes behind it.
async fn plan_of(spec: kk_config::Spec, spoil: impl Fn(&mut kk_engine::Facts)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut facts = testing::fresh(&spec);
    facts.values_mut().for_each(spoil);
    let session = testing::session(spec, folder.path());
    let target = session.target(&facts).await.unwrap();
    let plan = Plan::new(pipelines::create_cluster::pipeline(&target).unwrap(), &facts).unwrap();
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

#[tokio::test]
async fn a_delete_leaves_hosts_alone_that_hold_nothing() {
    let spec = testing::sample("three-nodes.yaml");
    let mut facts = testing::fresh(&spec);
    let folder = tempfile::tempdir().unwrap();
    let name = spec.hosts[1].name.clone();
    facts.get_mut(&name).unwrap().owned = vec!["made\t/etc/etcd.env"].into();
    let removal = Removal { spec: &spec, facts: &facts, all: true, folder: folder.path().to_owned() };
    let plan = Plan::new(pipelines::delete_cluster::pipeline(&removal), &facts).unwrap();
    assert!(!plan.is_empty());
    for task in plan.changes() {
        assert!(serde_json::to_string(&task).unwrap().contains(&name));
    }
}

#[tokio::test]
async fn a_delete_without_all_leaves_the_runtime() {
    let spec = testing::sample("all-in-one.yaml");
    let mut facts = testing::fresh(&spec);
    let lines = [
        "made\t/usr/local/bin/containerd",
        "made\t/etc/containerd/config.toml",
        "made\t/usr/local/bin/crictl",
    ];
    for facts in facts.values_mut() {
        facts.owned = lines.map(str::to_owned).to_vec().into();
    }
    let plan = |all| {
        let removal = Removal { spec: &spec, facts: &facts, all, folder: "/nowhere".into() };
        Plan::new(pipelines::delete_cluster::pipeline(&removal), &facts).unwrap().is_empty()
    };
    assert!(plan(false) && !plan(true));
}

#[tokio::test]
async fn a_delete_does_not_end_a_cluster_of_somebody_else() {
    let spec = testing::sample("all-in-one.yaml");
    let mut facts = testing::fresh(&spec);
    for facts in facts.values_mut() {
        facts.files.insert("/etc/kubernetes/kubelet.conf".into(), kk_engine::FileFact::default());
    }
    let folder = tempfile::tempdir().unwrap();
    let session = testing::session(spec, folder.path());
    let error = session.delete(&facts, true).err().unwrap().to_string();
    assert!(error.contains("a cluster that kk did not make"), "{error}");
    for facts in facts.values_mut() {
        facts.owned = vec!["made\t/etc/systemd/system/kubelet.service"].into();
    }
    assert!(!session.delete(&facts, true).unwrap().plan.is_empty());
}

#[test]
fn a_delete_lets_selinux_enforce_again_where_it_did() {
    let spec = testing::sample("all-in-one.yaml");
    for (line, enforces) in [("saved\t/etc/selinux/config", true), ("made\t/etc/etcd.env", false)] {
        let mut facts = testing::fresh(&spec);
        for facts in facts.values_mut() {
            facts.owned = vec![line.to_owned()].into();
        }
        let removal = Removal { spec: &spec, facts: &facts, all: false, folder: "/nowhere".into() };
        let pipeline = pipelines::delete_cluster::pipeline(&removal);
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
        assert_eq!(text.contains("setenforce 1"), enforces, "{line}");
    }
}

/// The plan for hosts that all have joined, with this answer of the first one to the question about the cluster.
async fn plan_of_joined(answer: &str) -> String {
    let file = kk_engine::FileFact { sha256: "same".into(), ..kk_engine::FileFact::default() };
    plan_of(testing::sample("three-nodes.yaml"), |facts| {
        facts.values.insert("cluster".into(), answer.to_owned());
        for path in ["/etc/kubernetes/kubelet.conf", "/etc/kubernetes/pki/ca.crt"] {
            facts.files.insert(path.into(), file.clone());
        }
    })
    .await
}

const ANSWERED: &str = "ConfigMap\tkube-system/kubeadm-config\nConfigMap\tkube-public/cluster-info\nend\n";

#[tokio::test]
async fn only_an_init_that_did_not_end_is_done_again() {
    for (answer, again, waits) in [
        ("", true, false),
        ("end\n", true, false),
        ("initialised\nend\n", true, false),
        (ANSWERED, false, false),
        // The API is down.
        ("initialised\n", false, true),
    ] {
        let plan = plan_of_joined(answer).await;
        assert_eq!(plan.contains("(kubeadm init)"), again, "{answer}");
        assert_eq!(plan.contains("wait until the API answers"), waits, "{answer}");
        assert_eq!(plan.contains("write the manifests of the control plane"), waits, "{answer}");
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
        let text = kubeadm::cluster_documents(&session.target(&facts).await.unwrap());
        let (_, after) = text.split_once(&format!("\n{section}\n")).unwrap();
        assert!(after.starts_with("  masqueradeAll: true"), "{mode}: {text}");
    }
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
    let target = session.target(&facts).await.unwrap();
    let token = kubeadm::Token { id: "abcdef".into(), secret: kk_config::Secret::new("0123456789abcdef") };
    let [first, second] = [&target.spec.hosts[0], &target.spec.hosts[1]];
    format!(
        "{}\n# join\n{}\n# discovery\n{}",
        kubeadm::init_documents(&target, first, &token),
        kubeadm::join_document(&target, second, &token, "discovery.conf"),
        kubeadm::discovery_kubeconfig(&target.endpoint(), "CA", &token),
    )
}

#[tokio::test]
async fn kubeadm_gets_documents_of_its_version() {
    for version in ["v1.28.15", "v1.30.14", "v1.31.14", "v1.36.4"] {
        let documents = documents(version).await;
        insta::assert_snapshot!(format!("kubeadm_{version}"), documents);
    }
}
