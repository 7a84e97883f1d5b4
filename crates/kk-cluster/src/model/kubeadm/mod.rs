//! Documents for kubeadm: `kubeadm.k8s.io/v1beta3` below Kubernetes 1.31 and `v1beta4` since 1.31, with the configurations of the
//! kubelet and of kube-proxy.
//!
//! They are built as values and then written as YAML, so that no value of the user can escape from its position.

mod cluster;
mod join;
mod kube_proxy;
mod kubelet;
mod notes;
mod preflight;
mod probes;

use kk_config::Host;
use serde_json::{Map, Value, json};

use crate::{
    base::{
        token::{self, Token},
        yaml::documents,
    },
    model::cluster::Cluster,
};
use cluster::cluster_configuration;
use kube_proxy::kube_proxy_configuration;
use kubelet::kubelet_configuration;

pub(crate) use cluster::etcd_endpoints;
pub use kubelet::kubelet_defaults;

pub(crate) use join::{discovery_kubeconfig, join_document};
pub(crate) use notes::{
    cluster_document, control_plane_documents, control_plane_documents_with, kube_proxy_documents,
    kubelet_document,
};
pub(crate) use preflight::ignored_checks;
pub(crate) use probes::{join_patches, manifest_files, probe_patches};

/// The documents for `kubeadm init` on the first control plane.
pub(crate) fn init_documents(cluster: &Cluster, host: &Host, token: &Token) -> String {
    let mut init = init_configuration(cluster, host);
    init["bootstrapTokens"] = json!([{
        "token": token.text().expose(),
        "description": token::DESCRIPTION,
        "ttl": format!("{}h0m0s", token::HOURS),
        // Nodes verify the cluster by its CA, not by a signature that the token makes.
        "usages": ["authentication"],
        "groups": ["system:bootstrappers:kubeadm:default-node-token"],
    }]);
    let [configuration, kubelet, proxy] = settings(cluster);
    documents(&[init, configuration, kubelet, proxy])
}

/// The documents for single phases of `kubeadm init` on a running control plane. Without its own address in them, kubeadm would
/// use the address of the default route.
pub(crate) fn phase_documents(cluster: &Cluster, host: &Host) -> String {
    let [configuration, kubelet, proxy] = settings(cluster);
    documents(&[init_configuration(cluster, host), configuration, kubelet, proxy])
}

/// The document that a control plane needs in addition to its note of settings, so that kubeadm can create certificates for it
/// later. It contains no options of a single run.
pub(crate) fn node_document(cluster: &Cluster, host: &Host) -> String {
    documents(&[json!({
        "apiVersion": api_version(cluster),
        "kind": "InitConfiguration",
        "localAPIEndpoint": {"advertiseAddress": host.internal_address, "bindPort": api_port()},
        "nodeRegistration": {"name": host.name, "criSocket": cluster.runtime.cri_socket},
    })])
}

fn settings(cluster: &Cluster) -> [Value; 3] {
    let configuration = cluster_configuration(cluster, &cluster.spec.control_planes());
    [configuration, kubelet_configuration(cluster), kube_proxy_configuration(cluster)]
}

fn init_configuration(cluster: &Cluster, host: &Host) -> Value {
    let mut document = json!({
        "apiVersion": api_version(cluster),
        "kind": "InitConfiguration",
        "localAPIEndpoint": {"advertiseAddress": host.internal_address, "bindPort": api_port()},
        "nodeRegistration": node_registration(cluster, host),
        "patches": probes::patches(),
    });
    set_timeouts(cluster, &mut document);
    document
}

/// Slow hosts need more than the minute that kubeadm waits for its first requests to the API. Older document versions have no
/// such field.
fn set_timeouts(cluster: &Cluster, document: &mut Value) {
    if is_v1beta4(cluster) {
        document["timeouts"] = json!({"kubernetesAPICall": "4m0s"});
    }
}

fn api_port() -> u16 {
    kk_config::ControlPlaneEndpoint::API_SERVER_PORT
}

fn is_v1beta4(cluster: &Cluster) -> bool {
    cluster.spec.kubernetes.version.at_least(1, 31)
}

fn api_version(cluster: &Cluster) -> &'static str {
    if is_v1beta4(cluster) { "kubeadm.k8s.io/v1beta4" } else { "kubeadm.k8s.io/v1beta3" }
}

fn node_registration(cluster: &Cluster, host: &Host) -> Value {
    // Images are pulled before; a check by kubeadm would take seconds. If the user skips that pull, kubeadm has to pull.
    let policy = if cluster.options.skip_pull_images { "IfNotPresent" } else { "Never" };
    let mut registration = json!({
        "name": host.name,
        "criSocket": cluster.runtime.cri_socket,
        "imagePullPolicy": policy,
    });
    // A control plane that is also a worker accepts pods: an empty list prevents kubeadm's own taint.
    if host.has_role(&kk_config::Role::ControlPlane) && host.has_role(&kk_config::Role::Worker) {
        registration["taints"] = json!([]);
    }
    registration
}

/// The user's raw keys replace the generated ones as a whole, as in KubeKey.
fn replace_top_level(document: &mut Value, own: &Map<String, Value>) {
    for (key, value) in own {
        document[key] = value.clone();
    }
}
