//! Settings of network plugins that KubeKey installs and kk does not.

use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Settings of Kube-OVN.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "KubeKey's and Kube-OVN's own names")]
pub struct KubeOvn {
    #[serde(rename = "enableSSL")]
    pub enable_ssl: Option<bool>,
    #[serde(rename = "joinCIDR")]
    pub join_cidr: Option<String>,
    pub label: Option<String>,
    pub tunnel_type: Option<String>,
    pub svc_yaml_ipfamilypolicy: Option<String>,
    pub dpdk: KubeOvnDpdk,
    #[serde(rename = "ovs-ovn")]
    pub ovs_ovn: KubeOvnOvs,
    #[serde(rename = "kube-ovn-controller")]
    pub controller: KubeOvnController,
    #[serde(rename = "kube-ovn-cni")]
    pub cni: KubeOvnCni,
    #[serde(rename = "kube-ovn-pinger")]
    pub pinger: KubeOvnPinger,
}

/// DPDK for Kube-OVN.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "KubeKey's own names")]
pub struct KubeOvnDpdk {
    pub dpdk_mode: Option<bool>,
    pub dpdk_tunnel_iface: Option<String>,
    pub dpdk_version: Option<String>,
}

/// Kube-OVN's switch.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "KubeKey's own names")]
pub struct KubeOvnOvs {
    pub hw_offload: Option<bool>,
}

/// Kube-OVN's controller.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "KubeKey's own names")]
pub struct KubeOvnController {
    pub pod_gateway: Option<String>,
    pub check_gateway: Option<bool>,
    pub logical_gateway: Option<bool>,
    pub exclude_ips: Option<String>,
    pub network_type: Option<String>,
    pub vlan_interface_name: Option<String>,
    #[serde(rename = "vlanID")]
    pub vlan_id: Option<String>,
    pub pod_nic_type: Option<String>,
    #[serde(rename = "enableLB")]
    pub enable_lb: Option<bool>,
    #[serde(rename = "enableNP")]
    pub enable_np: Option<bool>,
    pub enable_eip_snat: Option<bool>,
    #[serde(rename = "enableExternalVPC")]
    pub enable_external_vpc: Option<bool>,
}

/// Kube-OVN's part on each node.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "KubeKey's own names")]
pub struct KubeOvnCni {
    pub enable_mirror: Option<bool>,
    pub iface: Option<String>,
    #[serde(rename = "CNIConfigPriority")]
    pub cni_config_priority: Option<String>,
    pub modules: Option<String>,
    #[serde(rename = "RPMs")]
    pub rpms: Option<String>,
}

/// Kube-OVN's network test.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "KubeKey's own names")]
pub struct KubeOvnPinger {
    pub pinger_external_address: Option<String>,
    pub pinger_external_domain: Option<String>,
}

/// Settings of hybridnet.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "KubeKey's and hybridnet's own names")]
pub struct Hybridnet {
    pub default_network_type: Option<String>,
    pub enable_network_policy: Option<bool>,
    pub init: Option<bool>,
    pub prefer_vxlan_interfaces: Option<String>,
    pub prefer_vlan_interfaces: Option<String>,
    #[serde(rename = "preferBGPInterfaces")]
    pub prefer_bgp_interfaces: Option<String>,
    pub networks: Vec<HybridnetNetwork>,
}

/// A network of hybridnet.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "KubeKey's and hybridnet's own names")]
pub struct HybridnetNetwork {
    pub name: Option<String>,
    #[serde(rename = "netID")]
    pub net_id: Option<i64>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub mode: Option<String>,
    pub node_selector: BTreeMap<String, String>,
    pub subnets: Vec<HybridnetSubnet>,
}

/// A subnet of a hybridnet network.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "KubeKey's and hybridnet's own names")]
pub struct HybridnetSubnet {
    pub name: Option<String>,
    #[serde(rename = "netID")]
    pub net_id: Option<i64>,
    pub cidr: Option<String>,
    pub gateway: Option<String>,
    pub start: Option<String>,
    pub end: Option<String>,
    #[serde(rename = "reservedIPs")]
    pub reserved_ips: Vec<String>,
    #[serde(rename = "excludeIPs")]
    pub exclude_ips: Vec<String>,
}
