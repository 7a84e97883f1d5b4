//! `spec.network.calico`: the settings of Calico.

use crate::spec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Calico recommends Typha for clusters with more nodes; KubeKey has the same limit.
const NODES_WITHOUT_TYPHA: usize = 50;
/// Calico's recommendation for production: one instance for 200 nodes, and at least 3.
const NODES_OF_TYPHA: usize = 200;
const FEWEST_TYPHA: usize = 3;

/// Settings of Calico. Settings of address pools apply only when Calico creates the pools. Later, the user changes the pools with
/// `kubectl patch ippools.crd.projectcalico.org`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Calico {
    /// IP-in-IP between hosts (IPv4): `Always`, `CrossSubnet` or `Never`; `Always` when absent, and `Never` with a `vxlanMode`.
    pub ipip_mode: Option<Encapsulation>,
    /// VXLAN between hosts, also for IPv6: `Always`, `CrossSubnet` or `Never`. With it, Calico runs without BGP.
    pub vxlan_mode: Encapsulation,
    /// MTU of pods' interfaces; with 0, Calico detects it.
    #[serde(rename = "vethMTU")]
    pub veth_mtu: u32,
    /// How a node finds its IPv4 address, such as `interface=eth.*`; its internal address when absent.
    pub ip_auto_detection_method: Option<String>,
    /// Whether packets that leave the cluster get the address of their node.
    pub ipv4_nat_outgoing: bool,
    /// The same for IPv6.
    pub ipv6_nat_outgoing: bool,
    /// Whether Calico creates address pools with the ranges of pods. If false, you create the pools.
    #[serde(rename = "defaultIPPOOL")]
    pub default_ippool: bool,
    /// Prefix length of the blocks of IPv4 addresses that nodes get, 20 to 32; Calico's default is 26.
    pub block_size: Option<u8>,
    /// Typha, between the API and the nodes.
    pub typha: Typha,
    /// calico-kube-controllers.
    pub controller: CalicoController,
}

impl Default for Calico {
    fn default() -> Self {
        Self {
            ipip_mode: None,
            vxlan_mode: Encapsulation::Never,
            veth_mtu: 0,
            ip_auto_detection_method: None,
            ipv4_nat_outgoing: true,
            ipv6_nat_outgoing: false,
            default_ippool: true,
            block_size: None,
            typha: Typha::default(),
            controller: CalicoController::default(),
        }
    }
}

/// When packets between hosts are encapsulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Encapsulation {
    /// `Always`.
    Always,
    /// `CrossSubnet`: between hosts in different subnets.
    CrossSubnet,
    /// `Never`.
    Never,
}

impl fmt::Display for Encapsulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Settings of Typha.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Typha {
    /// Whether Typha runs, between the API and the nodes; by default with more than 50 nodes.
    pub enabled: Option<bool>,
    /// Number of its pods; when absent, one for 200 nodes, at least 3, and at most one for each node.
    #[schemars(range(min = 1))]
    pub replicas: Option<u32>,
    /// Labels of the nodes on which it may run.
    pub node_selector: BTreeMap<String, String>,
}

/// Settings of calico-kube-controllers.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct CalicoController {
    /// Number of pods of calico-kube-controllers; only one works at a time.
    #[schemars(range(min = 1))]
    pub replicas: Option<u32>,
    /// Labels of the nodes on which it may run.
    pub node_selector: BTreeMap<String, String>,
}

impl Calico {
    /// The settings in a cluster with this number of nodes.
    pub(crate) fn settings(&self, nodes: usize) -> spec::Calico {
        let other = if self.vxlan_mode == Encapsulation::Never {
            Encapsulation::Always
        } else {
            Encapsulation::Never
        };
        let typha = self.typha.enabled.unwrap_or(nodes > NODES_WITHOUT_TYPHA).then(|| {
            let wanted = nodes.div_ceil(NODES_OF_TYPHA).max(FEWEST_TYPHA).min(nodes.max(1));
            spec::CalicoWorkload {
                replicas: self.typha.replicas.or(u32::try_from(wanted).ok()),
                node_selector: self.typha.node_selector.clone(),
            }
        });
        spec::Calico {
            ipip: self.ipip_mode.unwrap_or(other),
            vxlan: self.vxlan_mode,
            mtu: self.veth_mtu,
            autodetection: self.ip_auto_detection_method.clone(),
            nat_outgoing: self.ipv4_nat_outgoing,
            nat_outgoing_v6: self.ipv6_nat_outgoing,
            default_pool: self.default_ippool,
            block_size: self.block_size,
            typha,
            controllers: spec::CalicoWorkload {
                replicas: self.controller.replicas,
                node_selector: self.controller.node_selector.clone(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typha_runs_in_large_clusters_or_where_the_file_asks_for_it() {
        for (enabled, replicas, nodes, expected) in [
            (None, None, 50, None),
            (None, None, 51, Some(3)),
            (None, None, 1000, Some(5)),
            (None, Some(7), 51, Some(7)),
            (Some(true), None, 1, Some(1)),
            (Some(false), None, 1000, None),
        ] {
            let typha = Typha { enabled, replicas, ..Typha::default() };
            let settings = Calico { typha, ..Calico::default() }.settings(nodes);
            let found = settings.typha.map(|typha| typha.replicas.unwrap());
            assert_eq!(found, expected, "{enabled:?} {replicas:?} {nodes}");
        }
    }

    #[test]
    fn vxlan_replaces_ipip_unless_the_file_sets_both() {
        use Encapsulation::{Always, CrossSubnet, Never};
        for (ipip_mode, vxlan_mode, expected) in [
            (None, Never, Always),
            (None, CrossSubnet, Never),
            (Some(Never), Never, Never),
            (Some(CrossSubnet), Never, CrossSubnet),
        ] {
            let settings = Calico { ipip_mode, vxlan_mode, ..Calico::default() }.settings(1);
            assert_eq!(settings.ipip, expected, "{ipip_mode:?} {vxlan_mode:?}");
        }
    }
}
