//! Plans of a create on the hosts of a running cluster.

use super::plan_of;
use crate::{
    base::cluster_state::{API, INITIALISED},
    testing::{self, KUBERNETES},
};

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
        ("no", ANSWERED, false, false, true),
        ("yes", "end\n", false, false, true),
        ("yes", ANSWERED, false, false, true),
        // The API is down; kk publishes to it when it is back.
        ("yes", "", false, true, true),
    ] {
        let plan = plan_of_joined(disk, api).await;
        assert_eq!(plan.contains("(kubeadm init)"), again, "{disk} {api}");
        assert_eq!(plan.contains("wait until the API answers"), waits, "{disk} {api}");
        assert_eq!(plan.contains("write the manifests of the control plane"), waits, "{disk} {api}");
        assert_eq!(plan.contains("publish the settings of the cluster"), publishes, "{disk} {api}");
    }
}

#[tokio::test]
async fn a_cluster_that_was_ready_is_verified_after_a_change() {
    let spec = testing::sample("three-nodes.yaml");
    let node = |host: &kk_config::Host| format!("Node\t{}\tTrue\t{KUBERNETES}\t\t\n", host.name);
    let nodes = spec.hosts.iter().map(node).collect::<Vec<_>>().concat();
    let ready = format!(
        "{nodes}DaemonSet\tkube-system/kube-proxy\t1\t1\nDaemonSet\tkube-flannel/kube-flannel-ds\t1\t1\n\
         Deployment\tkube-system/coredns\t1\t1\n{ANSWERED}"
    );
    let plan = plan_of_joined("yes", &ready).await;
    assert!(plan.contains("restart kubelet.service"), "{plan}");
    assert!(plan.contains("\"wait_until_ready\"") && plan.contains("\"ask_pods\""), "{plan}");
}
