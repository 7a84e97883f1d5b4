//! `spec.controlPlaneEndpoint`.

use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// How nodes and users reach the API.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ControlPlaneEndpoint {
    /// The load balancer that kk installs for the API: `haproxy`, or `kube-vip` with a free `address`. When absent, `address`
    /// is your own load balancer, or there is only one control plane.
    pub internal_loadbalancer: Option<InternalLoadbalancer>,
    /// Name of the API; written to `/etc/hosts` of every host unless `externalDNS`.
    pub domain: String,
    /// IPv4 address of your own load balancer, or a free address for kube-vip; the first control plane's internal address when
    /// absent. Not with haproxy.
    pub address: Option<String>,
    /// Port of the API behind `domain`.
    #[schemars(range(min = 1))]
    pub port: u16,
    /// Your own DNS knows `domain`: leave `/etc/hosts` alone.
    #[serde(rename = "externalDNS")]
    pub external_dns: bool,
    /// Settings of the `kube-vip` load balancer.
    pub kubevip: KubeVip,
}

impl Default for ControlPlaneEndpoint {
    fn default() -> Self {
        Self {
            internal_loadbalancer: None,
            domain: "lb.kubesphere.local".to_owned(),
            address: None,
            port: 6443,
            external_dns: false,
            kubevip: KubeVip::default(),
        }
    }
}

/// A load balancer made by the installer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InternalLoadbalancer {
    /// haproxy on every node that is not a control plane.
    Haproxy,
    /// kube-vip on the control planes.
    KubeVip,
}

/// Settings of the `kube-vip` load balancer.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct KubeVip {
    /// `ARP` (default) or `BGP`.
    pub mode: Option<KubeVipMode>,
    /// Network interface of the address with `ARP`; the one with the host's internal address when absent.
    pub interface: Option<String>,
    /// Autonomous system of the control planes with `BGP`; 65000 when absent.
    pub asn: Option<u32>,
    /// Routers for `BGP`.
    pub peers: Vec<BgpPeer>,
    /// Further environment variables of kube-vip, such as `vip_leaseduration`.
    pub env: BTreeMap<String, String>,
}

/// A router to which kube-vip announces its address.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct BgpPeer {
    /// IPv4 address of the router.
    pub address: std::net::Ipv4Addr,
    /// Autonomous system of the router.
    pub asn: u32,
    /// Whether the router is in another network than the control planes.
    #[serde(default)]
    pub multihop: bool,
}

/// How kube-vip announces its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[expect(missing_docs, reason = "the names of two protocols")]
pub enum KubeVipMode {
    Arp,
    Bgp,
}
