//! How often a kubelet looks whether a part of the control plane has started: patches of the static pods that kubeadm writes.
//!
//! kubeadm's own startup probes wait for 10 s and then look every 10 s, so that the API shows a part as ready up to 20 s
//! after it is. Every create and every restart of a control plane waits for that.

use kk_config::{Host, Role};
use serde_json::{Value, json};

use super::phase_documents;
use crate::model::cluster::Cluster;

/// The parts that kubeadm runs as static pods; etcd is none of them.
const PARTS: [&str; 3] = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/// Seconds that a part has to start: as long as kubeadm gives it.
const START: u32 = 240;

/// Where the documents say that the patches are: beside them.
pub(super) fn patches() -> Value {
    json!({"directory": "."})
}

/// The patches, by the file names from which kubeadm knows the part. For a patch it takes every file below there whose name begins with that
/// of a part, or with `etcd`, and ends with `.yaml` or `.json` (kubeadm, `app/util/patches`).
pub(crate) fn probe_patches() -> impl Iterator<Item = (String, Vec<u8>)> {
    PARTS.into_iter().map(|part| {
        let probe = json!({"initialDelaySeconds": 0, "periodSeconds": 1, "failureThreshold": START});
        let patch = json!({"spec": {"containers": [{"name": part, "startupProbe": probe}]}});
        (format!("{part}.yaml"), crate::base::yaml::to_string(&patch).into_bytes())
    })
}

/// What `kubeadm init phase control-plane` needs beside it to write the manifests: `config.yaml` and the patches.
pub(crate) fn manifest_files(cluster: &Cluster, host: &Host) -> impl Iterator<Item = (String, Vec<u8>)> {
    let config = phase_documents(cluster, host).into_bytes();
    probe_patches().chain([("config.yaml".to_owned(), config)])
}

/// What a join needs beside its document: only a control plane gets static pods.
pub(crate) fn join_patches(host: &Host) -> impl Iterator<Item = (String, Vec<u8>)> {
    probe_patches().filter(|_| host.has_role(&Role::ControlPlane))
}
