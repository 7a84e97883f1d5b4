//! `spec.dns`, as written in the file and as used by the other crates.

use schemars::JsonSchema;
use serde::Deserialize;

/// Name resolution on hosts and in the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
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

impl Dns {
    /// The lines of `nodeEtcHosts`, without comments.
    pub fn host_lines(&self) -> impl Iterator<Item = &str> {
        let lines = self.node_etc_hosts.lines().map(str::trim);
        lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
    }
}

/// CoreDNS.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct NodeLocalDns {
    /// Zones that other servers know.
    pub external_zones: Vec<ExternalZone>,
}

/// Zones that other servers know.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(missing_docs, reason = "CoreDNS's own names")]
pub struct ExternalZone {
    pub zones: Vec<String>,
    pub nameservers: Vec<String>,
    pub cache: Option<u32>,
    pub rewrite: Vec<String>,
}
