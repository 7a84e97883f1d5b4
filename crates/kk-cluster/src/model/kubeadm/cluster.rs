//! Configuration of the cluster: networks, endpoints, certificates, flags of the control plane.

use std::collections::BTreeMap;

use kk_config::{EncryptionAlgorithm, Host, Spec};
use serde_json::{Value, json};

use super::{api_version, is_v1beta4};
use crate::{
    base::host_layout::{ETCD_CA, ETCD_CERT, ETCD_KEY},
    model::cluster::Cluster,
};

/// The addresses by which API servers reach the members of etcd.
pub(crate) fn etcd_endpoints(spec: &Spec) -> Vec<String> {
    let endpoint = |host: &&Host| format!("https://{}:{}", host.internal_address, spec.etcd.port);
    spec.etcd_hosts().iter().map(endpoint).collect()
}

/// The certificates of API servers contain the names of these control planes.
pub(super) fn cluster_configuration(cluster: &Cluster, control_planes: &[&Host]) -> Value {
    let (spec, kubernetes) = (cluster.spec, &cluster.spec.kubernetes);
    let etcd = etcd_endpoints(spec);
    let mut document = json!({
        "apiVersion": api_version(cluster),
        "kind": "ClusterConfiguration",
        "clusterName": kubernetes.cluster_name,
        "kubernetesVersion": kubernetes.version.to_string(),
        "imageRepository": cluster.images.repository("registry.k8s.io"),
        "certificatesDir": "/etc/kubernetes/pki",
        "controlPlaneEndpoint": cluster.endpoint().authority(),
        "etcd": {"external": {"endpoints": etcd, "caFile": ETCD_CA, "certFile": ETCD_CERT, "keyFile": ETCD_KEY}},
        "networking": {
            "dnsDomain": kubernetes.dns_domain,
            "podSubnet": spec.network.pod_subnet(),
            "serviceSubnet": spec.network.service_subnet(),
        },
        "apiServer": {
            "certSANs": cert_sans(cluster, control_planes),
            "extraArgs": args(cluster, &with_gates(cluster, kubernetes.apiserver_args.clone())),
        },
        "controllerManager": {"extraArgs": args(cluster, &controller_manager_args(cluster))},
        "scheduler": {"extraArgs": args(cluster, &with_gates(cluster, kubernetes.scheduler_args.clone()))},
    });
    if is_v1beta4(cluster) {
        document["encryptionAlgorithm"] = json!(kubernetes.encryption_algorithm.as_str());
        for (name, period) in [
            ("certificateValidityPeriod", &kubernetes.certificate_validity_period),
            ("caCertificateValidityPeriod", &kubernetes.ca_certificate_validity_period),
        ] {
            if let Some(period) = period {
                document[name] = json!(period);
            }
        }
        // kk has its own template for CoreDNS; `kubeadm upgrade` must not replace it by kubeadm's.
        document["dns"] = json!({"disabled": true});
        document["proxy"] = json!({"disabled": kubernetes.disable_kube_proxy});
    } else if kubernetes.encryption_algorithm == EncryptionAlgorithm::EcdsaP256 {
        document["featureGates"] = json!({"PublicKeysECDSA": true});
    }
    document
}

/// Every name by which clients may call an API server, each once, in a fixed order.
fn cert_sans(cluster: &Cluster, control_planes: &[&Host]) -> Vec<String> {
    let spec = cluster.spec;
    let mut names = cluster.endpoint().in_certificates();
    names.extend(["localhost".to_owned(), "127.0.0.1".to_owned()]);
    for host in control_planes {
        names.extend([
            host.name.clone(),
            format!("{}.{}", host.name, spec.kubernetes.cluster_name),
            host.address.clone(),
            host.internal_address.to_string(),
        ]);
        names.extend(host.internal_address_v6.map(|address| address.to_string()));
    }
    names.extend(spec.kubernetes.apiserver_cert_extra_sans.iter().cloned());
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

fn controller_manager_args(cluster: &Cluster) -> BTreeMap<String, String> {
    let (network, kubernetes) = (&cluster.spec.network, &cluster.spec.kubernetes);
    let mut args = BTreeMap::new();
    if network.pods_v6.is_some() {
        args.insert("node-cidr-mask-size-ipv4".to_owned(), kubernetes.node_cidr_mask_size.to_string());
        args.insert("node-cidr-mask-size-ipv6".to_owned(), kubernetes.node_cidr_mask_size_ipv6.to_string());
    } else {
        args.insert("node-cidr-mask-size".to_owned(), kubernetes.node_cidr_mask_size.to_string());
    }
    // With its own limit of 20 requests per second, it waits 5 s at each start and change of leader, before the first node is
    // admitted. These values are the kubelet's defaults since Kubernetes 1.27.
    args.insert("kube-api-qps".to_owned(), "50".to_owned());
    args.insert("kube-api-burst".to_owned(), "100".to_owned());
    args.extend(kubernetes.controller_manager_args.clone());
    with_gates(cluster, args)
}

/// Adds the user's feature gates, unless the user's own flags set feature gates.
fn with_gates(cluster: &Cluster, mut args: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let gates = &cluster.spec.kubernetes.feature_gates;
    if !gates.is_empty() {
        let text = gates.iter().map(|(gate, on)| format!("{gate}={on}")).collect::<Vec<_>>().join(",");
        args.entry("feature-gates".to_owned()).or_insert(text);
    }
    args
}

/// Flags in the format of the API version: a list of names and values since v1beta4, a map before.
fn args(cluster: &Cluster, args: &BTreeMap<String, String>) -> Value {
    if is_v1beta4(cluster) {
        args.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
    } else {
        json!(args)
    }
}
