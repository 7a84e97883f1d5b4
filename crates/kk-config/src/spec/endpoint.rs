//! How the API is reached.

use std::net::Ipv4Addr;

/// How the API server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlPlaneEndpoint {
    /// Name in every kubeconfig, written to `/etc/hosts` unless `external_dns`.
    pub domain: String,
    /// Where the name leads: the given load balancer or the first control plane's internal address.
    /// `None` only with `external_dns` and no address in the file.
    pub address: Option<Ipv4Addr>,
    /// Port of the API behind `domain`. API servers themselves listen on
    /// [`API_SERVER_PORT`](ControlPlaneEndpoint::API_SERVER_PORT).
    pub port: u16,
    /// The user's own DNS knows `domain`; leave `/etc/hosts` alone.
    pub external_dns: bool,
    /// True when the user named an address of their own; false when it is the first control plane's.
    pub external_address: bool,
}

impl ControlPlaneEndpoint {
    /// The port on which every API server listens.
    pub const API_SERVER_PORT: u16 = 6443;
}
