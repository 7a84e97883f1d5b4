//! A host: its access and its roles.

use crate::Secret;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// One machine of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Name of the node and, by default, of the machine. A DNS name in lower case.
    pub name: String,
    /// Address for SSH: an IP address or a DNS name.
    pub address: String,
    /// Address inside the cluster.
    pub internal_address: Ipv4Addr,
    /// Second address inside the cluster (dual stack).
    pub internal_address_v6: Option<Ipv6Addr>,
    /// The host is the control machine: no SSH. The SSH fields are then unused.
    pub local: bool,
    /// SSH port.
    pub port: u16,
    /// SSH user; other than root it needs the right to use sudo.
    pub user: String,
    /// SSH password.
    pub password: Option<Secret>,
    /// SSH key. With neither password nor key the agent and the user's default keys are tried.
    pub private_key: Option<PrivateKey>,
    /// Password for sudo; the default is the SSH password.
    pub sudo_password: Option<Secret>,
    /// The host's public key as in `known_hosts`, without the host (`ssh-ed25519 AAAA…`). If it is set, no other key is accepted.
    pub host_key: Option<String>,
    /// The architecture in the file; `None` means that it is detected.
    pub arch: Option<Arch>,
    /// Node labels.
    pub labels: BTreeMap<String, String>,
    /// Node taints.
    pub taints: Vec<Taint>,
    /// Time limit for connecting.
    pub timeout: Duration,
    /// The host through which this host is reached: its own bastion or the cluster's.
    pub bastion: Option<Bastion>,
    /// The roles of the host; never empty.
    pub roles: BTreeSet<Role>,
}

impl Host {
    /// Whether the host has the role.
    pub fn has_role(&self, role: &Role) -> bool {
        self.roles.contains(role)
    }

    /// Whether the host runs a kubelet: it is a control plane or a worker.
    pub fn is_node(&self) -> bool {
        self.has_role(&Role::ControlPlane) || self.has_role(&Role::Worker)
    }
}

/// A private key for SSH.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrivateKey {
    /// The key itself, PEM or OpenSSH format.
    Inline(Secret),
    /// A file on the control machine; a leading `~` is the home directory.
    Path(String),
}

/// A host that forwards connections to others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bastion {
    /// An IP address or DNS name.
    pub address: String,
    /// SSH port.
    pub port: u16,
    /// SSH user.
    pub user: String,
    /// SSH password.
    pub password: Option<Secret>,
    /// SSH key, as in [`Host::private_key`].
    pub private_key: Option<PrivateKey>,
    /// The only host key to accept, as in [`Host::host_key`].
    pub host_key: Option<String>,
}

/// The purpose of a host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Runs an etcd member.
    Etcd,
    /// Runs the Kubernetes control plane. `master` and `control-plane` in the file.
    ControlPlane,
    /// Runs pods.
    Worker,
    /// Runs an image registry.
    Registry,
    /// A group of the user's own, for scripts.
    Custom(String),
}

impl Role {
    /// The role for a role group of this name.
    pub fn from_group(name: &str) -> Self {
        match name {
            "etcd" => Self::Etcd,
            "master" | "control-plane" => Self::ControlPlane,
            "worker" => Self::Worker,
            "registry" => Self::Registry,
            other => Self::Custom(other.to_owned()),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Etcd => "etcd",
            Self::ControlPlane => "control-plane",
            Self::Worker => "worker",
            Self::Registry => "registry",
            Self::Custom(name) => name,
        })
    }
}

/// Processor architecture, by Go's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// `x86_64`.
    Amd64,
    /// `aarch64`.
    Arm64,
}

impl Arch {
    /// All architectures.
    pub const ALL: [Self; 2] = [Self::Amd64, Self::Arm64];

    /// `amd64` or `arm64`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// From a name in the file or from `uname -m`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "amd64" | "x86_64" => Some(Self::Amd64),
            "arm64" | "aarch64" => Some(Self::Arm64),
            _ => None,
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A node taint; displayed as `key=value:Effect`, the form of `kubectl taint`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taint {
    /// A label key.
    pub key: String,
    /// A label value; may be empty.
    pub value: String,
    /// The effect of the taint on pods that do not tolerate it.
    pub effect: TaintEffect,
}

impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.value.is_empty() { "" } else { "=" };
        write!(f, "{}{separator}{}:{}", self.key, self.value, self.effect.as_str())
    }
}

/// The effect of a taint on pods that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaintEffect {
    /// New pods are not scheduled.
    NoSchedule,
    /// New pods are scheduled on other nodes if possible.
    PreferNoSchedule,
    /// Running pods are evicted, too.
    NoExecute,
}

impl TaintEffect {
    /// All effects.
    pub const ALL: [Self; 3] = [Self::NoSchedule, Self::PreferNoSchedule, Self::NoExecute];

    /// The name in the Kubernetes API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}
