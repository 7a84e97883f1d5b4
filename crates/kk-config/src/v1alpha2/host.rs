//! `spec.hosts` and the bastion.

use crate::{Arch, Secret};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A machine.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct Host {
    /// Name of the node and of the machine. A DNS name in lower case.
    pub name: String,
    /// Where SSH connects to: an IP address or a DNS name; `internalAddress` when absent.
    pub address: Option<String>,
    /// Address inside the cluster: an IPv4 address, or `v4,v6`; `address` when absent.
    pub internal_address: Option<String>,
    /// SSH port.
    #[schemars(range(min = 1))]
    pub port: u16,
    /// SSH user; other than root it needs the right to use sudo.
    pub user: String,
    /// SSH password.
    pub password: Option<Secret>,
    /// SSH key, the text itself.
    pub private_key: Option<Secret>,
    /// SSH key, a file. With neither password nor key the SSH agent and your default keys are tried.
    pub private_key_path: Option<String>,
    /// Password for sudo; the SSH password when absent.
    pub sudo_password: Option<Secret>,
    /// The host's public key as in `known_hosts` (`ssh-ed25519 AAAA…`): no other is accepted.
    pub host_key: Option<String>,
    /// Processor architecture, `amd64` or `arm64`; detected when absent (KubeKey: amd64).
    pub arch: Option<Arch>,
    /// Seconds that connecting may take.
    #[schemars(range(min = 1))]
    pub timeout: u32,
    /// Node labels.
    pub labels: BTreeMap<String, String>,
    /// Node taints, each `key=value:Effect` or `key:Effect`.
    pub taints: Vec<String>,
    /// The host through which this one is reached; `spec.bastion` when absent.
    pub bastion: Option<Bastion>,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            name: String::new(),
            address: None,
            internal_address: None,
            port: 22,
            user: "root".to_owned(),
            password: None,
            private_key: None,
            private_key_path: None,
            sudo_password: None,
            host_key: None,
            arch: None,
            timeout: 30,
            labels: BTreeMap::new(),
            taints: Vec::new(),
            bastion: None,
        }
    }
}

/// A host that forwards SSH connections.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(extend("required" = ["address"]))]
pub struct Bastion {
    /// An IP address or a DNS name.
    pub address: String,
    /// SSH port.
    #[schemars(range(min = 1))]
    pub port: u16,
    /// SSH user.
    pub user: String,
    /// SSH password.
    pub password: Option<Secret>,
    /// SSH key, the text itself.
    pub private_key: Option<Secret>,
    /// SSH key, a file.
    pub private_key_path: Option<String>,
    /// The bastion's public key as in `known_hosts` (`ssh-ed25519 AAAA…`): no other is accepted.
    pub host_key: Option<String>,
}

impl Default for Bastion {
    fn default() -> Self {
        Self {
            address: String::new(),
            port: 22,
            user: "root".to_owned(),
            password: None,
            private_key: None,
            private_key_path: None,
            host_key: None,
        }
    }
}
