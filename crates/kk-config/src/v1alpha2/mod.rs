//! The `Cluster` document (`kubekey.kubesphere.io/v1alpha2`) as written in the file: KubeKey's fields by KubeKey's names, and
//! kk's own fields. The types only describe the document; meaning and checks are in `normalise`.
//!
//! The doc comments become the descriptions in the JSON schema. A field that is absent, `null` or an empty text gets its default.

mod addons;
mod calico;
mod dns;
mod endpoint;
mod etcd;
mod host;
mod known_plugins;
mod kubernetes;
mod manifest;
mod network;
mod registry;
mod system;

pub use addons::{Addon, AddonChart, AddonPhase, AddonSources, AddonYaml, KubeSphere, OpenEbs, Storage};
pub use calico::{Calico, CalicoController, Encapsulation, Typha};
pub use dns::{CoreDns, Dns, ExternalZone, NodeLocalDns};
pub use endpoint::{BgpPeer, ControlPlaneEndpoint, InternalLoadbalancer, KubeVip, KubeVipMode};
pub use etcd::{Etcd, EtcdLogLevel, EtcdMetrics, EtcdType, ExternalEtcd};
pub use host::{Bastion, Host};
pub use known_plugins::{
    Hybridnet, HybridnetNetwork, HybridnetSubnet, KubeOvn, KubeOvnCni, KubeOvnController, KubeOvnDpdk,
    KubeOvnOvs, KubeOvnPinger,
};
pub use kubernetes::{ContainerManager, Kubernetes, KubernetesType, Toggle};
pub use manifest::{
    ContainerRuntime, Distribution, Iso, Manifest, ManifestChart, ManifestComponent, ManifestComponents,
    ManifestFile, ManifestRegistry, ManifestSpec, OperatingSystem, Repository,
};
pub use network::*;
pub use registry::{NamespaceRewrite, Registry, RegistryAuth, RegistryType, RemoteMirror, RewritePolicy};
pub use system::{CustomScript, System};

use crate::{Components, Download};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The `apiVersion` of the document.
pub const API_VERSION: &str = "kubekey.kubesphere.io/v1alpha2";

/// Words that KubeKey accepts and that kk refuses for now, by field.
const REFUSED_WORDS: [(&str, &[&str]); 5] = [
    ("spec.network.plugin", &["kubeovn", "hybridnet"]),
    ("spec.controlPlaneEndpoint.internalLoadbalancer", &["haproxy", "kube-vip"]),
    ("spec.etcd.type", &["kubeadm", "external"]),
    ("spec.kubernetes.type", &["k3s", "k8e"]),
    ("spec.kubernetes.containerManager", &["docker", "crio", "isula"]),
];

/// The hint for users who want a network plugin that kk does not install.
pub(crate) const OWN_NETWORK: &str =
    "for another plugin, write `none` and list it in `addons` with `phase: network`";

/// The hint about another solution, for an unknown word of a field.
pub(crate) fn alternative(path: &str) -> Option<&'static str> {
    (path == "spec.network.plugin").then_some(OWN_NETWORK)
}

/// Whether a word of a field is read but refused afterwards.
pub(crate) fn is_refused(path: &str, word: &str) -> bool {
    REFUSED_WORDS.iter().any(|(field, words)| *field == path && words.contains(&word))
}

/// A Kubernetes cluster: its hosts, their roles, and every setting.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(extend("required" = ["apiVersion", "kind", "metadata", "spec"]))]
pub struct Cluster {
    /// Always `kubekey.kubesphere.io/v1alpha2`.
    pub api_version: String,
    /// Always `Cluster`.
    pub kind: String,
    /// The name of the cluster.
    pub metadata: Metadata,
    /// What the cluster shall be.
    pub spec: ClusterSpec,
}

/// The name of the cluster.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct Metadata {
    /// Names the working directory `kubekey/<name>` on the control machine. Small letters, digits, `-` and `.`.
    pub name: String,
    /// Accepted as in any Kubernetes object, and not used.
    pub namespace: Option<String>,
    /// Accepted as in any Kubernetes object, and not used.
    pub labels: BTreeMap<String, String>,
    /// Accepted as in any Kubernetes object, and not used.
    pub annotations: BTreeMap<String, String>,
}

/// What the cluster shall be.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(extend("required" = ["hosts", "roleGroups"]))]
pub struct ClusterSpec {
    /// The machines.
    pub hosts: Vec<Host>,
    /// Host names by role: `etcd`, `control-plane` (or `master`), `worker`, `registry`, or a name of your own
    /// for scripts (these do not run yet). Ranges and lists are expanded: `node[1:3]`, `node[01:12]`, `node[1,3,5]`.
    pub role_groups: BTreeMap<String, Vec<String>>,
    /// How nodes and users reach the API.
    pub control_plane_endpoint: ControlPlaneEndpoint,
    /// What is done to the operating system of each host.
    pub system: System,
    /// The etcd cluster.
    pub etcd: Etcd,
    /// Name resolution on hosts and in the cluster.
    pub dns: Dns,
    /// Version and settings of the Kubernetes components.
    pub kubernetes: Kubernetes,
    /// Address ranges and the network plugin.
    pub network: Network,
    /// Local volumes.
    pub storage: Storage,
    /// Where images come from.
    pub registry: Registry,
    /// Charts and manifests to install afterwards.
    pub addons: Vec<Addon>,
    /// KubeSphere; usually given as a second document of kind `ClusterConfiguration`.
    pub kubesphere: KubeSphere,
    /// Where programs come from.
    pub download: Download,
    /// Versions of components other than Kubernetes; each absent one takes what suits the Kubernetes version.
    pub components: Components,
    /// The host through which all hosts without a bastion of their own are reached.
    pub bastion: Option<Bastion>,
}
