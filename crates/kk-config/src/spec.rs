//! The normalised [`Spec`]: what the user wants, in plain types with every default applied.
//!
//! It is made by [`crate::load`] and [`Spec::all_in_one`] only, so whoever holds one may rely on what the
//! checks promise: names are unique, every role names a known host, there is a control plane, ranges are
//! disjoint. It is read-only input for everything downstream.

mod components;
mod host;
mod kubernetes;

pub use components::Components;
pub use host::{Arch, Bastion, Host, PrivateKey, Role, Taint, TaintEffect};
pub use kubernetes::{EncryptionAlgorithm, Kubernetes, ProxyMode};

use crate::Secret;
use ipnet::{Ipv4Net, Ipv6Net};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// A whole cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// `metadata.name`: names the working directory on the control machine. A DNS label.
    pub name: String,
    /// The hosts that have a role, in the order of the file. Hosts in no role group are left out.
    pub hosts: Vec<Host>,
    /// The address of the API for nodes and users.
    pub control_plane_endpoint: ControlPlaneEndpoint,
    /// What is done to the operating system of each host.
    pub system: System,
    /// The etcd cluster, run by systemd on the hosts with [`Role::Etcd`].
    pub etcd: Etcd,
    /// Versions and settings of the Kubernetes components.
    pub kubernetes: Kubernetes,
    /// Address ranges and the network plugin.
    pub network: Network,
    /// Name resolution on hosts and in the cluster.
    pub dns: Dns,
    /// Where images come from.
    pub registry: Registry,
    /// Where programs come from.
    pub download: Download,
    /// Versions of components other than Kubernetes, where the user pins them.
    pub components: Components,
    /// Host names by role, in the order of the file's role groups.
    pub(crate) role_groups: BTreeMap<Role, Vec<String>>,
}

impl Spec {
    /// The host with this name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// The hosts with a role, in the order of its role group. Empty when nobody has the role.
    pub fn with_role(&self, role: &Role) -> Vec<&Host> {
        self.role_groups.get(role).into_iter().flatten().filter_map(|name| self.host(name)).collect()
    }

    /// The etcd members, in the order of their role group.
    pub fn etcd_hosts(&self) -> Vec<&Host> {
        self.with_role(&Role::Etcd)
    }

    /// The control planes, in the order of their role group.
    pub fn control_planes(&self) -> Vec<&Host> {
        self.with_role(&Role::ControlPlane)
    }

    /// The control plane that runs `kubeadm init`: the first of its role group.
    pub fn first_control_plane(&self) -> &Host {
        self.control_planes().first().copied().expect("a spec without a control plane is refused")
    }

    /// The hosts that become Kubernetes nodes (control planes and workers), in the order of the file.
    pub fn nodes(&self) -> Vec<&Host> {
        self.hosts.iter().filter(|host| host.is_node()).collect()
    }
}

/// How the API server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlPlaneEndpoint {
    /// Name in every kubeconfig, written to `/etc/hosts` unless `external_dns`.
    pub domain: String,
    /// Where the name leads: the given load balancer or the first control plane's internal address.
    /// `None` only with `external_dns` and no address in the file.
    pub address: Option<Ipv4Addr>,
    /// Port of the API behind `domain`. API servers themselves listen on
    /// [`API_SERVER_PORT`](ControlPlaneEndpoint::API_SERVER_PORT).
    pub port: u16,
    /// The user's own DNS knows `domain`; leave `/etc/hosts` alone.
    pub external_dns: bool,
    /// True when the user named an address of their own; false when it is the first control plane's.
    pub external_address: bool,
}

impl ControlPlaneEndpoint {
    /// The port on which every API server listens.
    pub const API_SERVER_PORT: u16 = 6443;
}

/// Changes to the operating system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct System {
    /// Leave users, kernel settings, limits, swap and the like as they are.
    pub skip_configure_os: bool,
    /// Kernel settings in addition to the program's own; they win where both name a key.
    pub sysctl: BTreeMap<String, String>,
    /// Set each machine's host name to the host's name.
    pub set_hostname: bool,
    /// Stop and disable `firewalld` and `ufw`.
    pub disable_firewall: bool,
}

/// etcd run by systemd. Names and defaults follow etcd's own options of the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Etcd {
    /// Client port.
    pub port: u16,
    /// Port between members.
    pub peer_port: u16,
    /// Directory of the data on the hosts; absolute.
    pub data_dir: String,
    /// Milliseconds.
    pub heartbeat_interval_ms: u32,
    /// Milliseconds; at least five heartbeats.
    pub election_timeout_ms: u32,
    /// Transactions between two snapshots.
    pub snapshot_count: u64,
    /// Hours of history that compaction keeps; 0 turns it off.
    pub auto_compaction_retention: u32,
    /// `basic` or `extensive`.
    pub metrics: String,
    /// Bytes; `None` leaves etcd's own default (as below).
    pub quota_backend_bytes: Option<u64>,
    /// Bytes.
    pub max_request_bytes: Option<u64>,
    /// Snapshot files to keep.
    pub max_snapshots: Option<u32>,
    /// Write-ahead log files to keep.
    pub max_wals: Option<u32>,
    /// `debug`, `info`, `warn`, `error`, `panic` or `fatal`.
    pub log_level: Option<String>,
    /// Further lines for etcd's environment file, each `NAME=value`.
    pub extra_args: Vec<String>,
}

/// Address ranges and the plugin that connects pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// What connects pods.
    pub plugin: NetworkPlugin,
    /// Addresses of pods.
    pub pods: Ipv4Net,
    /// IPv6 addresses of pods; present together with `services_v6` (dual stack).
    pub pods_v6: Option<Ipv6Net>,
    /// Addresses of Services.
    pub services: Ipv4Net,
    /// IPv6 addresses of Services.
    pub services_v6: Option<Ipv6Net>,
}

impl Network {
    /// The address of the cluster's DNS Service: the third of the Service range, as KubeKey has it.
    pub fn dns_service_address(&self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.services.network()) + 3)
    }

    /// Pod ranges as Kubernetes takes them: `v4` or `v4,v6`.
    pub fn pod_subnet(&self) -> String {
        joined(self.pods, self.pods_v6)
    }

    /// Service ranges as Kubernetes takes them: `v4` or `v4,v6`.
    pub fn service_subnet(&self) -> String {
        joined(self.services, self.services_v6)
    }
}

fn joined(v4: Ipv4Net, v6: Option<Ipv6Net>) -> String {
    v6.map_or_else(|| v4.to_string(), |v6| format!("{v4},{v6}"))
}

/// The network plugins that can be installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkPlugin {
    /// flannel with the given backend.
    Flannel(FlannelBackend),
    /// None: the user installs one; nodes stay not ready until then.
    None,
}

/// How flannel carries packets between hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlannelBackend {
    /// `vxlan`: works wherever UDP passes.
    Vxlan,
    /// `host-gw`: plain routes; all hosts on one link.
    HostGw,
}

impl FlannelBackend {
    /// The name in flannel's own configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vxlan => "vxlan",
            Self::HostGw => "host-gw",
        }
    }
}

/// Name resolution.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dns {
    /// Further lines for `/etc/hosts` of every host.
    pub node_etc_hosts: Vec<String>,
    /// Servers that CoreDNS forwards to; empty means the host's `/etc/resolv.conf`.
    pub upstream_servers: Vec<String>,
    /// Text added to CoreDNS's main server block.
    pub coredns_additional_configs: String,
}

/// Where images come from and how registries are reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registry {
    /// `host[:port][/path]` that replaces the registry of every image of the cluster.
    pub private_registry: Option<String>,
    /// Replaces the namespace of every image in the private registry.
    pub namespace_override: Option<String>,
    /// Mirrors of docker.io: URLs, tried in this order.
    pub registry_mirrors: Vec<String>,
    /// `host[:port]` of registries whose certificate is not verified.
    pub insecure_registries: Vec<String>,
    /// Mirrors by registry host: URLs, tried in this order.
    pub remote_mirrors: BTreeMap<String, Vec<String>>,
    /// Access by registry `host[:port]`.
    pub auths: BTreeMap<String, RegistryAuth>,
    /// containerd's root directory on the hosts; absolute.
    pub containerd_data_dir: String,
}

/// How one registry is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegistryAuth {
    /// Both or none of user name and password.
    pub credentials: Option<Credentials>,
    /// Do not verify the certificate.
    pub skip_tls_verify: bool,
    /// Speak HTTP, not HTTPS.
    pub plain_http: bool,
    /// Directory on the control machine with `*.crt` (CA), `*.cert` and `*.key` (client).
    pub certs_path: Option<String>,
}

/// A user name and its password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user name.
    pub username: String,
    /// The password or token.
    pub password: Secret,
}

/// Where programs come from. Everything absent: the addresses of the built-in catalogue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Download {
    /// Base URL below which everything is found under its host and path: `https://dl.k8s.io/release/…` becomes `<mirror>/dl.k8s.io/release/…`; without a `/` at its end.
    pub mirror: Option<String>,
    /// PEM file on the control machine with the CA of the mirror.
    pub ca_file: Option<String>,
    /// A catalogue file of your own, which wins over the built-in one.
    pub catalogue: Option<String>,
}
