//! The endpoint of the API.

use crate::v1alpha2::BgpPeer;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// The name, address and port under which the API is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlPlaneEndpoint {
    /// Name in every kubeconfig, written to `/etc/hosts` unless `external_dns`.
    pub domain: String,
    /// The address that the name resolves to on nodes: the load balancer in the file, or the first control plane's internal
    /// address; with haproxy, the node itself. `None` only with `external_dns` and no address in the file.
    pub address: Option<Ipv4Addr>,
    /// Port of the API behind `domain`. API servers themselves listen on
    /// [`API_SERVER_PORT`](ControlPlaneEndpoint::API_SERVER_PORT).
    pub port: u16,
    /// The user's own DNS resolves `domain`; `/etc/hosts` stays unchanged.
    pub external_dns: bool,
    /// Whether the address belongs to a load balancer, not to a control plane.
    pub external_address: bool,
    /// Whether the file has an address.
    pub has_address: bool,
    /// The load balancer that kk installs.
    pub balancer: Balancer,
}

/// A load balancer that kk installs for the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Balancer {
    /// The user's own, or none.
    None,
    /// haproxy on every node that is not a control plane.
    Haproxy,
    /// kube-vip on the control planes, of which one has the address.
    KubeVip(KubeVip),
}

/// Settings of kube-vip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeVip {
    /// The routers to which the control planes announce the address. `None`: by ARP, in the network of the control planes.
    pub bgp: Option<Bgp>,
    /// The network interface of the address, instead of the one with the host's internal address.
    pub interface: Option<String>,
    /// Further environment variables.
    pub env: BTreeMap<String, String>,
}

/// Settings of BGP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bgp {
    /// Autonomous system of the control planes.
    pub asn: u32,
    /// At least one router.
    pub peers: Vec<BgpPeer>,
}

impl ControlPlaneEndpoint {
    /// The port on which every API server listens.
    pub const API_SERVER_PORT: u16 = 6443;
}
