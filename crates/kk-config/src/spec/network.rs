//! Address ranges and the network plugin.

use crate::NetworkPlugin;
use ipnet::{Ipv4Net, Ipv6Net};
use serde_json::{Map, Value};
use std::net::Ipv4Addr;

/// Address ranges and the plugin that connects pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// The plugin that connects pods.
    pub plugin: NetworkPlugin,
    /// Whether the backend vxlan of flannel uses plain routes to hosts on the same link.
    pub flannel_direct_routing: bool,
    /// Values for the chart of Cilium that override the values of kk.
    pub cilium_values: Map<String, Value>,
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
    /// The address of the cluster's DNS Service: the third of the Service range, as in KubeKey.
    pub fn dns_service_address(&self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.services.network()) + 3)
    }

    /// The address of the Service of the API: the first of the Service range, as in Kubernetes.
    pub fn api_service_address(&self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.services.network()) + 1)
    }

    /// Pod ranges in the format of Kubernetes: `v4` or `v4,v6`.
    pub fn pod_subnet(&self) -> String {
        joined(self.pods, self.pods_v6)
    }

    /// Service ranges in the format of Kubernetes: `v4` or `v4,v6`.
    pub fn service_subnet(&self) -> String {
        joined(self.services, self.services_v6)
    }
}

fn joined(v4: Ipv4Net, v6: Option<Ipv6Net>) -> String {
    v6.map_or_else(|| v4.to_string(), |v6| format!("{v4},{v6}"))
}
