//! The API behind its name. This is the only place that knows what the name resolves to: on hosts, in pods, on the control
//! machine and in certificates.

use std::net::Ipv4Addr;

use kk_config::{Balancer, ControlPlaneEndpoint, Host};

use crate::{base::cluster_state::ClusterState, model::cluster::Cluster};

/// The endpoint of the API in one command.
pub(crate) struct Endpoint<'a> {
    settings: &'a ControlPlaneEndpoint,
    current: Option<Ipv4Addr>,
    direct: Ipv4Addr,
}

impl<'a> Endpoint<'a> {
    /// The endpoint of a cluster in its current state.
    pub(crate) fn of(cluster: &Cluster<'a>) -> Self {
        let settings = &cluster.spec.control_plane_endpoint;
        let first = first_control_plane(cluster);
        let direct = if is_down(cluster, first) { cluster.api_host } else { first }.internal_address;
        Self { settings, current: current(cluster), direct }
    }

    /// The address to which the name has to resolve on nodes: the address in the file, or with haproxy the loopback address.
    pub(crate) fn wanted(&self) -> Option<Ipv4Addr> {
        self.settings.address
    }

    /// The address that the name resolves to. Without a load balancer it belongs to a control plane. While that host or its API
    /// does not answer, it is the address of the control plane whose API is used.
    pub(crate) fn address(&self) -> Option<Ipv4Addr> {
        self.current
    }

    /// Whether the address belongs to a load balancer, or with haproxy to the node itself.
    pub(crate) fn is_balanced(&self) -> bool {
        self.settings.external_address || self.is_own()
    }

    /// Whether kk itself installs the load balancer. It works only after the nodes have joined, so each node uses a control plane
    /// ([`Endpoint::direct`]) until then.
    pub(crate) fn is_own(&self) -> bool {
        self.settings.balancer != Balancer::None
    }

    /// The address of the first control plane. While that host or its API does not answer, the address of the control plane whose
    /// API is used.
    pub(crate) fn direct(&self) -> Ipv4Addr {
        self.direct
    }

    /// The location of the API, for messages about a move.
    pub(crate) fn describe(address: &str) -> String {
        if address.parse() == Ok(Ipv4Addr::LOCALHOST) {
            "each node itself (haproxy)".to_owned()
        } else {
            address.to_owned()
        }
    }

    /// The address that kube-vip adds to a control plane.
    pub(crate) fn virtual_address(&self) -> Option<Ipv4Addr> {
        self.settings.address.filter(|_| matches!(self.settings.balancer, Balancer::KubeVip(_)))
    }

    /// `domain:port`.
    pub(crate) fn authority(&self) -> String {
        format!("{}:{}", self.settings.domain, self.settings.port)
    }

    /// The URL in kubeconfigs on hosts.
    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.authority())
    }

    /// The URL in the kubeconfig on the control machine, which does not know the name unless the user's own DNS resolves it.
    pub(crate) fn url_from_outside(&self) -> String {
        match self.current {
            Some(Ipv4Addr::LOCALHOST) => format!("https://{}:{}", self.direct, self.settings.port),
            Some(address) if !self.settings.external_dns => {
                format!("https://{address}:{}", self.settings.port)
            }
            _ => self.url(),
        }
    }

    /// The line for `/etc/hosts` of a host on which the name has this address. `None`: the user's own DNS resolves the name.
    pub(crate) fn hosts_line(&self, address: Option<Ipv4Addr>) -> Option<String> {
        let address = address.filter(|_| !self.settings.external_dns)?;
        Some(format!("{address}  {}", self.settings.domain))
    }

    /// Name and port for pods in the network of their node.
    pub(crate) fn for_pods(&self) -> (&'a str, u16) {
        (&self.settings.domain, self.settings.port)
    }

    /// Its domain and its address, which the certificates of API servers contain.
    pub(crate) fn in_certificates(&self) -> Vec<String> {
        let address = self.settings.address.map(|address| address.to_string());
        std::iter::once(self.settings.domain.clone()).chain(address).collect()
    }
}

fn current(cluster: &Cluster) -> Option<Ipv4Addr> {
    let endpoint = &cluster.spec.control_plane_endpoint;
    let address = endpoint.address?;
    let owner = cluster.spec.control_planes().into_iter().find(|host| host.internal_address == address);
    let moves = !endpoint.external_dns && owner.is_some_and(|owner| is_down(cluster, owner));
    Some(if moves { cluster.api_host.internal_address } else { address })
}

/// Right after the loss of a host, no API may answer, because etcd elects a new leader.
fn is_down(cluster: &Cluster, owner: &Host) -> bool {
    match cluster.facts(owner) {
        None => cluster.is_initialised(),
        Some(facts) => cluster.state.answered && !ClusterState::of(facts).answered,
    }
}

fn first_control_plane<'a>(cluster: &Cluster<'a>) -> &'a Host {
    cluster.spec.control_planes().first().copied().unwrap_or(cluster.api_host)
}
