//! Intervals at which a kubelet checks whether a component of the control plane has started, as patches of the static pods that
//! kubeadm writes.
//!
//! kubeadm's own startup probes wait for 10 s and then check every 10 s, so the API shows a component as ready up to 20 s late.
//! Every create and every restart of a control plane waits for that.

use kk_config::{Host, Role};
use serde_json::{Value, json};

use super::phase_documents;
use crate::model::cluster::Cluster;

/// The components that kubeadm runs as static pods; etcd does not belong to them.
const PARTS: [&str; 3] = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/// Time limit in seconds for the start of a component, the same as kubeadm's.
const START: u32 = 240;

/// The directory of the patches in the documents: the directory that also contains the documents.
pub(super) fn patches() -> Value {
    json!({"directory": "."})
}

/// The patches, by the file names from which kubeadm derives the component. kubeadm reads every file in the directory whose name
/// begins with the name of a component, or with `etcd`, and ends with `.yaml` or `.json` (kubeadm, `app/util/patches`).
pub(crate) fn probe_patches() -> impl Iterator<Item = (String, Vec<u8>)> {
    PARTS.into_iter().map(|part| {
        let probe = json!({"initialDelaySeconds": 0, "periodSeconds": 1, "failureThreshold": START});
        let patch = json!({"spec": {"containers": [{"name": part, "startupProbe": probe}]}});
        (format!("{part}.yaml"), crate::base::yaml::to_string(&patch).into_bytes())
    })
}

/// The files that `kubeadm init phase control-plane` needs to write the manifests: `config.yaml` and the patches.
pub(crate) fn manifest_files(cluster: &Cluster, host: &Host) -> impl Iterator<Item = (String, Vec<u8>)> {
    let config = phase_documents(cluster, host).into_bytes();
    probe_patches().chain([("config.yaml".to_owned(), config)])
}

/// The files that a join needs in addition to its document: only a control plane gets static pods.
pub(crate) fn join_patches(host: &Host) -> impl Iterator<Item = (String, Vec<u8>)> {
    probe_patches().filter(|_| host.has_role(&Role::ControlPlane))
}
