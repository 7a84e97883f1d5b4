//! `spec.kubernetes`. Other crates get the fields without `pub` in another form, from [`crate::Kubernetes`].

use crate::{DEFAULT_KUBERNETES_VERSION, EncryptionAlgorithm, ProxyMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Version and settings of the Kubernetes components.
///
/// Defaults are KubeKey's, with three exceptions: `version`; `proxyMode` is `iptables`, which every kernel
/// has (KubeKey: `ipvs`); `containerManager` is `containerd`, because Kubernetes dropped docker in 1.24.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Kubernetes {
    /// The distribution; any other is refused.
    #[serde(rename = "type")]
    pub kind: KubernetesType,
    /// Version from 1.28 to 1.37 (KubeKey: v1.23.17).
    pub(crate) version: String,
    /// Name of the cluster in kubeconfigs.
    pub cluster_name: String,
    /// Domain of the cluster's Services.
    pub dns_domain: String,
    /// Run the cluster without kube-proxy.
    pub disable_kube_proxy: bool,
    /// kube-proxy masquerades all traffic to Services.
    pub masquerade_all: bool,
    /// Pods per node.
    #[schemars(range(min = 1))]
    pub max_pods: u32,
    /// Processes per pod; -1 for no limit.
    #[schemars(range(min = -1))]
    pub pod_pids_limit: i64,
    /// Prefix length of each node's share of the pod range.
    #[schemars(range(min = 8, max = 30))]
    pub node_cidr_mask_size: u8,
    /// The same for IPv6.
    #[serde(rename = "nodeCidrMaskSizeIPv6")]
    #[schemars(range(min = 48, max = 126))]
    pub node_cidr_mask_size_ipv6: u8,
    /// Further names and addresses in the API server's certificate.
    pub apiserver_cert_extra_sans: Vec<String>,
    /// How kube-proxy routes Services: `iptables`, `ipvs` or `nftables` (KubeKey: ipvs).
    pub proxy_mode: ProxyMode,
    /// A timer on the control planes renews their certificates before they end.
    pub auto_renew_certs: bool,
    /// Run a DNS cache on each node (KubeKey: true).
    pub nodelocaldns: Option<bool>,
    /// The container runtime; any other is refused (KubeKey: docker).
    pub container_manager: ContainerManager,
    /// Socket of the runtime; follows from `containerManager` when absent.
    pub container_runtime_endpoint: Option<String>,
    /// Label nodes with their hardware's features.
    pub node_feature_discovery: Toggle,
    /// Install Kata Containers.
    pub kata: Toggle,
    /// Write the API server's audit log.
    pub audit: Toggle,
    /// Make NVIDIA's runtime the default.
    pub nvidia_runtime: Option<bool>,
    /// Flags of kube-apiserver, each `name=value`.
    pub(crate) apiserver_args: Vec<String>,
    /// Flags of kube-controller-manager, each `name=value`.
    pub(crate) controller_manager_args: Vec<String>,
    /// Flags of kube-scheduler, each `name=value`.
    pub(crate) scheduler_args: Vec<String>,
    /// Flags of kubelet, each `name=value`.
    pub(crate) kubelet_args: Vec<String>,
    /// Flags of kube-proxy. They have no effect; a warning names the key in `kubeProxyConfiguration` for each flag.
    pub kube_proxy_args: Vec<String>,
    /// Feature gates of all components.
    pub feature_gates: BTreeMap<String, bool>,
    /// Top-level keys that replace those of the generated `KubeletConfiguration`.
    pub kubelet_configuration: Map<String, Value>,
    /// Top-level keys that replace those of the generated `KubeProxyConfiguration`.
    pub kube_proxy_configuration: Map<String, Value>,
    /// How long the certificates that kubeadm makes are valid, such as `8760h`; from Kubernetes 1.31 on.
    pub certificate_validity_period: Option<String>,
    /// How long their CAs are valid, such as `87600h`; from Kubernetes 1.31 on.
    pub ca_certificate_validity_period: Option<String>,
    /// Algorithm of the cluster's keys: `ECDSA-P256`, `RSA-2048`, `RSA-3072` or `RSA-4096`; by default the first from
    /// Kubernetes 1.31 on, and `RSA-2048` before.
    pub(crate) encryption_algorithm: Option<EncryptionAlgorithm>,
}

impl Default for Kubernetes {
    fn default() -> Self {
        Self {
            kind: KubernetesType::Kubernetes,
            version: DEFAULT_KUBERNETES_VERSION.to_owned(),
            cluster_name: "cluster.local".to_owned(),
            dns_domain: "cluster.local".to_owned(),
            disable_kube_proxy: false,
            masquerade_all: false,
            max_pods: 110,
            pod_pids_limit: 10_000,
            node_cidr_mask_size: 24,
            node_cidr_mask_size_ipv6: 120,
            apiserver_cert_extra_sans: Vec::new(),
            proxy_mode: ProxyMode::Iptables,
            auto_renew_certs: false,
            nodelocaldns: None,
            container_manager: ContainerManager::Containerd,
            container_runtime_endpoint: None,
            node_feature_discovery: Toggle::default(),
            kata: Toggle::default(),
            audit: Toggle::default(),
            nvidia_runtime: None,
            apiserver_args: Vec::new(),
            controller_manager_args: Vec::new(),
            scheduler_args: Vec::new(),
            kubelet_args: Vec::new(),
            kube_proxy_args: Vec::new(),
            feature_gates: BTreeMap::new(),
            kubelet_configuration: Map::new(),
            kube_proxy_configuration: Map::new(),
            certificate_validity_period: None,
            ca_certificate_validity_period: None,
            encryption_algorithm: None,
        }
    }
}

/// The distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "names of distributions")]
pub enum KubernetesType {
    Kubernetes,
    K3s,
    K8e,
}

/// The container runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "names of runtimes")]
pub enum ContainerManager {
    Docker,
    Containerd,
    Crio,
    Isula,
}

/// Something that is on or off.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Toggle {
    /// Off when absent.
    pub enabled: Option<bool>,
}
