//! Name resolution on hosts and in the cluster.

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
