//! Settings of the Kubernetes components.

use crate::KubeVersion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Versions and settings of the Kubernetes components.
#[derive(Debug, Clone, PartialEq)]
pub struct Kubernetes {
    /// 1.28 to 1.37.
    pub version: KubeVersion,
    /// Name of the cluster in kubeadm's configuration and kubeconfigs.
    pub cluster_name: String,
    /// Domain of the cluster's Services.
    pub dns_domain: String,
    /// Pods per node.
    pub max_pods: u32,
    /// Processes per pod.
    pub pod_pids_limit: i64,
    /// Prefix length of each node's share of the pod range.
    pub node_cidr_mask_size: u8,
    /// The same for IPv6.
    pub node_cidr_mask_size_ipv6: u8,
    /// Further names and addresses in the API server's certificate.
    pub apiserver_cert_extra_sans: Vec<String>,
    /// How kube-proxy routes Services.
    pub proxy_mode: ProxyMode,
    /// Run the cluster without kube-proxy.
    pub disable_kube_proxy: bool,
    /// kube-proxy masquerades all traffic to Services.
    pub masquerade_all: bool,
    /// Flags of kube-apiserver, by name without `--`.
    pub apiserver_args: BTreeMap<String, String>,
    /// Flags of kube-controller-manager.
    pub controller_manager_args: BTreeMap<String, String>,
    /// Flags of kube-scheduler.
    pub scheduler_args: BTreeMap<String, String>,
    /// Flags of kubelet.
    pub kubelet_args: BTreeMap<String, String>,
    /// Feature gates of all components.
    pub feature_gates: BTreeMap<String, bool>,
    /// Top-level keys that replace those of the generated `KubeletConfiguration`.
    pub kubelet_configuration: Map<String, Value>,
    /// Top-level keys that replace those of the generated `KubeProxyConfiguration`.
    pub kube_proxy_configuration: Map<String, Value>,
    /// A timer on the control planes renews their certificates before they end.
    pub auto_renew_certs: bool,
    /// How long certificates of kubeadm's are valid, as Go writes durations.
    pub certificate_validity_period: Option<String>,
    /// The same in seconds, with its default.
    pub certificate_seconds: u64,
    /// How long their CAs are valid.
    pub ca_certificate_validity_period: Option<String>,
    /// Algorithm of the cluster's keys.
    pub encryption_algorithm: EncryptionAlgorithm,
}

/// How kube-proxy routes Services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProxyMode {
    /// `iptables`: works on every kernel.
    Iptables,
    /// `ipvs`: needs the `ip_vs` kernel modules.
    Ipvs,
    /// `nftables`: needs a recent kernel; stable from Kubernetes 1.33.
    Nftables,
}

impl ProxyMode {
    /// The name in kube-proxy's configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Iptables => "iptables",
            Self::Ipvs => "ipvs",
            Self::Nftables => "nftables",
        }
    }
}

/// Algorithm of the keys of the cluster's certificates, by kubeadm's names (`encryptionAlgorithm`, v1beta4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the names say all")]
pub enum EncryptionAlgorithm {
    #[serde(rename = "ECDSA-P256")]
    EcdsaP256,
    #[serde(rename = "RSA-2048")]
    Rsa2048,
    #[serde(rename = "RSA-3072")]
    Rsa3072,
    #[serde(rename = "RSA-4096")]
    Rsa4096,
}

impl EncryptionAlgorithm {
    /// The name in kubeadm's configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EcdsaP256 => "ECDSA-P256",
            Self::Rsa2048 => "RSA-2048",
            Self::Rsa3072 => "RSA-3072",
            Self::Rsa4096 => "RSA-4096",
        }
    }
}
