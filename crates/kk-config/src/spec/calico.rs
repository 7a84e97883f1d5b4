//! Settings of Calico, with all defaults applied.

use crate::v1alpha2::Encapsulation;
use std::collections::BTreeMap;

/// Settings of Calico.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calico {
    /// IP-in-IP for IPv4. At most one of `ipip` and `vxlan` is used.
    pub ipip: Encapsulation,
    /// VXLAN, also for IPv6.
    pub vxlan: Encapsulation,
    /// MTU of pods' interfaces; with 0, Calico detects it.
    pub mtu: u32,
    /// How a node finds its IPv4 address; its internal address when absent.
    pub autodetection: Option<String>,
    /// Whether packets that leave the cluster get the address of their node.
    pub nat_outgoing: bool,
    /// The same for IPv6.
    pub nat_outgoing_v6: bool,
    /// Whether Calico creates address pools with the ranges of pods.
    pub default_pool: bool,
    /// Prefix length of the blocks of IPv4 addresses that nodes get, if the file sets it.
    pub block_size: Option<u8>,
    /// Typha, if it is used.
    pub typha: Option<CalicoWorkload>,
    /// calico-kube-controllers.
    pub controllers: CalicoWorkload,
}

/// Number and nodes of the pods of a Deployment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CalicoWorkload {
    /// The number of pods, if it is not Calico's default.
    pub replicas: Option<u32>,
    /// Labels of the nodes on which they may run.
    pub node_selector: BTreeMap<String, String>,
}

impl Calico {
    /// The default prefix length of blocks (`DEFAULT_IPV4_POOL_BLOCK_SIZE` in Calico's startup.go).
    pub const BLOCK_SIZE: u8 = 26;
    /// The default prefix length of blocks of IPv6 addresses.
    pub const BLOCK_SIZE_V6: u8 = 122;

    /// Whether packets travel in VXLAN. Then Calico runs without BGP.
    pub fn uses_vxlan(&self) -> bool {
        self.vxlan != Encapsulation::Never
    }

    /// Whether packets travel in IP-in-IP.
    pub fn uses_ipip(&self) -> bool {
        self.ipip != Encapsulation::Never
    }
}
