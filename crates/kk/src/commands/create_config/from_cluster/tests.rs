use insta::assert_snapshot;
use kk_config::{Loaded, Overrides, load};
use serde_json::Value;

use super::{answers::Answers, write};
use crate::error::Error;

/// Answers of kubectl, without fields that are not read.
macro_rules! answers {
    ($name:literal) => {
        answers(include_str!(concat!("answers/", $name, ".json")))
    };
}

fn answers(text: &str) -> Answers {
    let mut json: Value = serde_json::from_str(text).unwrap();
    let mut take = |key: &str| json[key].take();
    Answers {
        nodes: take("nodes"),
        configs: take("configs"),
        daemon_sets: take("daemonSets"),
        pods: take("pods"),
        plugin: take("plugin"),
    }
}

fn loaded(text: &str) -> Loaded {
    load("from-cluster.yaml", text, &Overrides::default()).unwrap()
}

/// The file, and what kk says about it.
fn file(answers: &Answers) -> String {
    let text = write("prod", answers).unwrap_or_else(|error| panic!("{error:?}"));
    let warnings: Vec<String> =
        loaded(&text).warnings.iter().map(|warning| warning.message.clone()).collect();
    format!("{text}---\n{}", warnings.join("\n"))
}

#[test]
fn a_cluster_of_kk() {
    assert_snapshot!(file(&answers!("kk_flannel")));
}

#[test]
fn a_cluster_of_kubekey_with_calico_and_haproxy() {
    assert_snapshot!(file(&answers!("kubekey_calico")));
}

#[test]
fn a_cluster_of_kubeadm_with_stacked_etcd() {
    assert_snapshot!(file(&answers!("kubeadm")));
}

#[test]
fn a_cluster_of_two_address_families_with_kube_vip() {
    assert_snapshot!(file(&answers!("dual_stack")));
}

#[test]
fn a_cluster_without_kube_proxy() {
    assert_snapshot!(file(&answers!("no_kube_proxy")));
}

/// The file to the answers of `kk_flannel`.
const ORIGINAL: &str = "
apiVersion: kubekey.kubesphere.io/v1alpha2
kind: Cluster
metadata: {name: prod}
spec:
  hosts:
    - {name: node1, address: 10.0.0.11, internalAddress: 10.0.0.11, privateKeyPath: ~/.ssh/id_ed25519, arch: amd64}
    - {name: node2, address: 192.168.1.12, internalAddress: 10.0.0.12, privateKeyPath: ~/.ssh/id_ed25519, arch: amd64, labels: {disk: ssd}}
    - {name: node3, address: 192.168.1.13, internalAddress: 10.0.0.13, privateKeyPath: ~/.ssh/id_ed25519, arch: arm64, taints: ['dedicated=batch:NoSchedule']}
  roleGroups: {etcd: ['node[1:3]'], control-plane: [node1], worker: ['node[2:3]']}
  kubernetes:
    version: v1.36.4
    maxPods: 200
    nodeCidrMaskSize: 23
    apiserverCertExtraSans: [api.example.com]
    apiserverArgs: [event-ttl=2h]
    featureGates: {InPlacePodVerticalScaling: true}
    kubeletConfiguration: {serializeImagePulls: false, logging: {verbosity: 4}}
  network: {plugin: flannel, kubePodsCIDR: 10.233.64.0/18, kubeServiceCIDR: 10.233.0.0/18}
";

#[test]
fn the_file_of_a_cluster_of_kk_means_what_its_own_file_means() {
    let text = write("prod", &answers!("kk_flannel")).unwrap();
    // SSH addresses of workers are not stored in the cluster.
    let filled = text.replace("address: 10.0.0.12 ", "address: 192.168.1.12 ");
    let filled = filled.replace("address: 10.0.0.13 ", "address: 192.168.1.13 ");
    assert_eq!(loaded(&filled).spec, loaded(ORIGINAL).spec);
}

fn refused(change: impl FnOnce(&mut Answers)) -> String {
    let mut answers = answers!("kk_flannel");
    change(&mut answers);
    match write("prod", &answers) {
        Err(Error::Config(errors)) => {
            let hint = errors.errors[0].hint.clone().unwrap_or_default();
            format!("{}: {hint}", errors.errors[0].message)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cluster_that_kk_cannot_describe_is_refused_with_the_reason() {
    let config = |answers: &mut Answers, from: &str, to: &str| {
        let text = &mut answers.configs["items"][0]["data"]["ClusterConfiguration"];
        *text = text.as_str().unwrap().replace(from, to).into();
    };
    let found = refused(|answers| answers.configs = Value::Null);
    assert!(found.starts_with("kubeadm did not make this cluster") && found.contains("by hand"), "{found}");
    let found = refused(|answers| config(answers, "v1.36.4", "v1.23.17"));
    assert!(found.contains("`v1.23.17`") && found.contains("upgrade the cluster"), "{found}");
    let found = refused(|answers| config(answers, "kind:", "[:"));
    assert!(found.starts_with("cannot read the settings of the cluster"), "{found}");
    let found = refused(|answers| answers.nodes["items"] = Value::Null);
    assert!(found.contains("no node of the cluster has the label"), "{found}");
    let found = refused(|answers| answers.nodes["items"][1]["status"]["addresses"] = Value::Null);
    assert!(found.starts_with("the node node2 has no internal IPv4 address"), "{found}");
    let found = refused(|answers| config(answers, "10.233.64.0/18", "fd00::/48"));
    assert!(found.contains("`fd00::/48` is not an address range"), "{found}");
}

#[test]
fn flags_that_kk_refuses_become_comments_with_the_reason() {
    let mut answers = answers!("kk_flannel");
    let text = &mut answers.configs["items"][0]["data"]["ClusterConfiguration"];
    *text = text.as_str().unwrap().replace("event-ttl", "tls-cert-file").into();
    let text = write("prod", &answers).unwrap();
    assert!(text.contains("# Left out: `--tls-cert-file` of kube-apiserver belongs to kk"), "{text}");
    assert!(text.contains("# - \"tls-cert-file=2h\""), "{text}");
}
