//! Settings of the Kubernetes components.

use crate::{KubeVersion, v1alpha2};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

/// Version and settings of the Kubernetes components. Fields of the file that need no other form are available through the
/// section (by [`Deref`]).
#[derive(Debug, Clone, PartialEq)]
pub struct Kubernetes {
    /// 1.28 to 1.37.
    pub version: KubeVersion,
    /// Flags of kube-apiserver, by name without `--`.
    pub apiserver_args: BTreeMap<String, String>,
    /// Flags of kube-controller-manager.
    pub controller_manager_args: BTreeMap<String, String>,
    /// Flags of kube-scheduler.
    pub scheduler_args: BTreeMap<String, String>,
    /// Flags of kubelet.
    pub kubelet_args: BTreeMap<String, String>,
    /// `certificateValidityPeriod` in seconds, with its default.
    pub certificate_seconds: u64,
    /// Algorithm of the cluster's keys.
    pub encryption_algorithm: EncryptionAlgorithm,
    /// The section as written.
    pub(crate) section: v1alpha2::Kubernetes,
}

impl Deref for Kubernetes {
    type Target = v1alpha2::Kubernetes;

    fn deref(&self) -> &Self::Target {
        &self.section
    }
}

impl DerefMut for Kubernetes {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.section
    }
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
