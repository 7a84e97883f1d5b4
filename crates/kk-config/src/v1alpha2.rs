//! The `Cluster` document (`kubekey.kubesphere.io/v1alpha2`) as it is written: KubeKey's fields by KubeKey's
//! names, and this program's own ones. The types only describe; meaning and checks are in `normalise`.
//!
//! The doc comments become the descriptions in the JSON schema. A field that is absent, `null` or an empty
//! text takes its default.

mod etcd;
mod host;
mod kubernetes;
mod network;
mod registry;

pub use etcd::{Etcd, EtcdLogLevel, EtcdMetrics, EtcdType, ExternalEtcd};
pub use host::{Bastion, Host};
pub use kubernetes::{ContainerManager, Kubernetes, KubernetesType, Toggle};
pub use network::{
    Calico, CalicoController, Flannel, Hybridnet, HybridnetNetwork, HybridnetSubnet, KubeOvn, KubeOvnCni,
    KubeOvnController, KubeOvnDpdk, KubeOvnOvs, KubeOvnPinger, Network, NetworkPlugin, Typha,
};
pub use registry::{
    Endpoints, NamespaceRewrite, Registry, RegistryAuth, RegistryType, RemoteMirror, RewritePolicy,
};

use crate::{Components, Download};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The `apiVersion` of the document.
pub const API_VERSION: &str = "kubekey.kubesphere.io/v1alpha2";

/// A Kubernetes cluster: its hosts, their roles, and every setting.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(extend("required" = ["apiVersion", "kind", "metadata", "spec"]))]
pub struct Cluster {
    /// Always `kubekey.kubesphere.io/v1alpha2`.
    pub api_version: String,
    /// Always `Cluster`.
    pub kind: String,
    /// The name of the cluster.
    pub metadata: Metadata,
    /// What the cluster shall be.
    pub spec: ClusterSpec,
}

/// The name of the cluster.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct Metadata {
    /// Names the working directory `kubekey/<name>` on the control machine. A DNS label.
    pub name: String,
    /// Accepted as in any Kubernetes object.
    pub namespace: Option<String>,
    /// Accepted as in any Kubernetes object.
    pub labels: BTreeMap<String, String>,
    /// Accepted as in any Kubernetes object.
    pub annotations: BTreeMap<String, String>,
}

/// What the cluster shall be.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(extend("required" = ["hosts", "roleGroups"]))]
pub struct ClusterSpec {
    /// The machines.
    pub hosts: Vec<Host>,
    /// Host names by role: `etcd`, `control-plane` (or `master`), `worker`, `registry`, or a name of your own
    /// for scripts (these do not run yet). Ranges and lists are expanded: `node[1:3]`, `node[01:12]`, `node[1,3,5]`.
    pub role_groups: BTreeMap<String, Vec<String>>,
    /// How nodes and users reach the API.
    pub control_plane_endpoint: ControlPlaneEndpoint,
    /// What is done to the operating system of each host.
    pub system: System,
    /// The etcd cluster.
    pub etcd: Etcd,
    /// Name resolution on hosts and in the cluster.
    pub dns: Dns,
    /// Version and settings of the Kubernetes components.
    pub kubernetes: Kubernetes,
    /// Address ranges and the network plugin.
    pub network: Network,
    /// Local volumes.
    pub storage: Storage,
    /// Where images come from.
    pub registry: Registry,
    /// Charts and manifests to install afterwards.
    pub addons: Vec<Addon>,
    /// KubeSphere; usually given as a second document of kind `ClusterConfiguration`.
    pub kubesphere: KubeSphere,
    /// Where programs come from.
    pub download: Download,
    /// Versions of components other than Kubernetes; each absent one takes what suits the Kubernetes version.
    pub components: Components,
    /// The host through which all hosts without a bastion of their own are reached.
    pub bastion: Option<Bastion>,
}

/// How nodes and users reach the API.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ControlPlaneEndpoint {
    /// A load balancer made by the installer; refused for now: give the `address` of your own.
    pub internal_loadbalancer: Option<InternalLoadbalancer>,
    /// Name of the API; written to `/etc/hosts` of every host unless `externalDNS`.
    pub domain: String,
    /// Your own load balancer's IPv4 address; the first control plane's internal address when absent.
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
    /// haproxy on every worker.
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
}

/// How kube-vip announces its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[expect(missing_docs, reason = "the names of two protocols")]
pub enum KubeVipMode {
    Arp,
    Bgp,
}

/// What is done to the operating system of each host.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct System {
    /// Time servers: addresses or names of hosts of the cluster.
    pub ntp_servers: Vec<String>,
    /// Time zone, such as `Europe/Berlin`.
    pub timezone: Option<String>,
    /// Further packages for hosts with rpm.
    pub rpms: Vec<String>,
    /// Further packages for hosts with deb.
    pub debs: Vec<String>,
    /// Scripts to run before anything is installed.
    pub pre_install: Vec<CustomScript>,
    /// Scripts to run when the cluster is there.
    pub post_cluster_install: Vec<CustomScript>,
    /// Scripts to run at the end.
    pub post_install: Vec<CustomScript>,
    /// Leave host name, swap, `SELinux`, firewall, kernel modules, kernel settings and limits as they are. What the cluster
    /// itself needs is still made: its lines of /etc/hosts, etcd's user, its directories.
    #[serde(rename = "skipConfigureOS")]
    pub skip_configure_os: bool,
    /// Kernel settings in addition to the installer's own; they win where both name a key.
    pub sysctl: BTreeMap<String, String>,
    /// Set each machine's host name to the host's name.
    pub set_hostname: bool,
    /// Stop and disable firewalld and ufw.
    pub disable_firewall: bool,
}

impl Default for System {
    fn default() -> Self {
        Self {
            ntp_servers: Vec::new(),
            timezone: None,
            rpms: Vec::new(),
            debs: Vec::new(),
            pre_install: Vec::new(),
            post_cluster_install: Vec::new(),
            post_install: Vec::new(),
            skip_configure_os: false,
            sysctl: BTreeMap::new(),
            set_hostname: true,
            disable_firewall: false,
        }
    }
}

/// A script of the user's own.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct CustomScript {
    /// Shown while it runs.
    pub name: Option<String>,
    /// The script.
    pub bash: Option<String>,
    /// The role group on whose hosts it runs; all hosts when absent.
    pub role: Option<String>,
    /// Files to bring along.
    pub materials: Vec<String>,
}

/// Name resolution on hosts and in the cluster.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Dns {
    /// Lines for CoreDNS's `hosts` block.
    pub dns_etc_hosts: Option<String>,
    /// Further lines for `/etc/hosts` of every host.
    pub node_etc_hosts: String,
    /// CoreDNS.
    pub coredns: CoreDns,
    /// The DNS cache on each node.
    pub nodelocaldns: NodeLocalDns,
}

/// CoreDNS.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct CoreDns {
    /// Text added to the main server block.
    pub additional_configs: String,
    /// Zones that other servers know.
    pub external_zones: Vec<ExternalZone>,
    /// A `rewrite` block.
    pub rewrite_block: Option<String>,
    /// Servers that queries are forwarded to; the host's `/etc/resolv.conf` when empty.
    #[serde(rename = "upstreamDNSServers")]
    pub upstream_dns_servers: Vec<String>,
}

/// The DNS cache on each node.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct NodeLocalDns {
    /// Zones that other servers know.
    pub external_zones: Vec<ExternalZone>,
}

/// Zones that other servers know.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "CoreDNS's own names")]
pub struct ExternalZone {
    pub zones: Vec<String>,
    pub nameservers: Vec<String>,
    pub cache: Option<u32>,
    pub rewrite: Vec<String>,
}

/// Local volumes.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Storage {
    /// `OpenEBS` local volumes.
    pub openebs: OpenEbs,
}

/// `OpenEBS` local volumes.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct OpenEbs {
    /// Directory of the volumes on each host; `/var/openebs/local` when absent.
    pub base_path: Option<String>,
}

/// A chart or manifests to install when the cluster is there.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say all")]
pub struct Addon {
    pub name: Option<String>,
    pub namespace: Option<String>,
    pub pre_install: Vec<CustomScript>,
    pub sources: AddonSources,
    pub post_install: Vec<CustomScript>,
    pub retries: Option<u32>,
    pub delay: Option<u32>,
}

/// Where an addon comes from.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say all")]
pub struct AddonSources {
    pub chart: AddonChart,
    pub yaml: AddonYaml,
}

/// A Helm chart.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "Helm's own names")]
pub struct AddonChart {
    pub name: Option<String>,
    pub repo: Option<String>,
    pub path: Option<String>,
    pub version: Option<String>,
    pub values_file: Option<String>,
    pub values: Vec<String>,
    pub wait: Option<bool>,
}

/// Manifests.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct AddonYaml {
    /// Files or URLs.
    pub path: Vec<String>,
    /// Values for the templates in them.
    pub values: serde_json::Value,
}

/// KubeSphere.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say all")]
pub struct KubeSphere {
    pub enabled: Option<bool>,
    pub version: Option<String>,
    pub configurations: Option<String>,
}
