//! `spec.network`. This file contains all declarations of the plugins that can be installed: names, settings, and the form for
//! the other crates.

use super::{Calico, Hybridnet, KubeOvn, Toggle};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// Address ranges and the network plugin.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Network {
    /// The plugin that connects pods: `flannel`, `calico`, `cilium`, or `none` for another plugin, which an addon with
    /// `phase: network` can install (KubeKey: calico). It cannot change in a running cluster.
    pub plugin: PluginName,
    /// Addresses of pods: `v4` or `v4,v6`.
    #[serde(rename = "kubePodsCIDR")]
    pub kube_pods_cidr: String,
    /// Addresses of Services: `v4` or `v4,v6`.
    #[serde(rename = "kubeServiceCIDR")]
    pub kube_service_cidr: String,
    /// Settings of Cilium (a field of kk).
    pub cilium: Cilium,
    /// Settings of Calico.
    pub calico: Calico,
    /// Settings of flannel.
    pub flannel: Flannel,
    /// Settings of Kube-OVN.
    pub kubeovn: KubeOvn,
    /// Settings of hybridnet.
    pub hybridnet: Hybridnet,
    /// Several networks per pod.
    #[serde(rename = "multusCNI")]
    pub multus_cni: Toggle,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            plugin: PluginName::Flannel,
            kube_pods_cidr: "10.233.64.0/18".to_owned(),
            kube_service_cidr: "10.233.0.0/18".to_owned(),
            cilium: Cilium::default(),
            calico: Calico::default(),
            flannel: Flannel::default(),
            kubeovn: KubeOvn::default(),
            hybridnet: Hybridnet::default(),
            multus_cni: Toggle::default(),
        }
    }
}

/// What connects pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "NetworkPlugin")]
#[expect(missing_docs, reason = "names of plugins")]
pub enum PluginName {
    Calico,
    Flannel,
    Cilium,
    Kubeovn,
    Hybridnet,
    None,
}

impl PluginName {
    /// The plugins that kk installs.
    pub(crate) const INSTALLED: [Self; 3] = [Self::Calico, Self::Flannel, Self::Cilium];
}

impl fmt::Display for PluginName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The plugins that can be installed, each with its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkPlugin {
    /// Calico with the given settings.
    Calico(Box<crate::spec::Calico>),
    /// flannel with the given backend.
    Flannel(FlannelBackend),
    /// Cilium, by its chart.
    Cilium,
    /// The user installs a plugin; nodes are not ready until then.
    None,
}

impl NetworkPlugin {
    /// Whether Services may work without kube-proxy. Nothing is known about a plugin that the user installs.
    pub(crate) fn may_replace_kube_proxy(&self) -> bool {
        match self {
            // Calico replaces it only if the user enables eBPF afterwards.
            Self::Calico(_) | Self::Flannel(_) => false,
            Self::Cilium | Self::None => true,
        }
    }
}

impl Network {
    /// The selected plugin with its settings in a cluster with this number of nodes; `None` for a plugin that cannot be
    /// installed.
    pub(crate) fn chosen(&self, nodes: usize) -> Option<NetworkPlugin> {
        match self.plugin {
            PluginName::Calico => Some(NetworkPlugin::Calico(Box::new(self.calico.settings(nodes)))),
            PluginName::Flannel => Some(NetworkPlugin::Flannel(self.flannel.backend_mode)),
            PluginName::Cilium => Some(NetworkPlugin::Cilium),
            PluginName::None => Some(NetworkPlugin::None),
            PluginName::Kubeovn | PluginName::Hybridnet => None,
        }
    }
}

/// Settings of Cilium.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cilium {
    /// Values of its chart, as in a file for `helm --values`; they override the values of kk.
    pub values: Map<String, Value>,
}

/// Settings of flannel.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Flannel {
    /// How packets travel between hosts: `vxlan`, or `host-gw` when all are on one link.
    pub backend_mode: FlannelBackend,
    /// With `vxlan`: use plain routes to hosts on the same link, and vxlan to the others. KubeKey does not use it.
    pub direct_routing: Option<bool>,
}

impl Default for Flannel {
    fn default() -> Self {
        Self { backend_mode: FlannelBackend::Vxlan, direct_routing: None }
    }
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
