//! The API behind its name. This is the only place that knows what the name resolves to: on hosts, in pods, on the control
//! machine and in certificates.

use std::net::Ipv4Addr;

use kk_config::{ControlPlaneEndpoint, Host};

use crate::{base::cluster_state::ClusterState, model::cluster::Cluster};

/// The endpoint of the API in one command.
pub(crate) struct Endpoint<'a> {
    settings: &'a ControlPlaneEndpoint,
    current: Option<Ipv4Addr>,
}

impl<'a> Endpoint<'a> {
    /// The endpoint of a cluster in its current state.
    pub(crate) fn of(cluster: &Cluster<'a>) -> Self {
        let settings = &cluster.spec.control_plane_endpoint;
        Self { settings, current: current(cluster) }
    }

    /// The address in the file.
    pub(crate) fn wanted(&self) -> Option<Ipv4Addr> {
        self.settings.address
    }

    /// The address that the name resolves to. Without a load balancer it belongs to a control plane. While that host or its API
    /// does not answer, it is the address of the control plane whose API is used.
    pub(crate) fn address(&self) -> Option<Ipv4Addr> {
        self.current
    }

    /// Whether the address belongs to the user's load balancer.
    pub(crate) fn is_balanced(&self) -> bool {
        self.settings.external_address
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
            Some(address) if !self.settings.external_dns => {
                format!("https://{address}:{}", self.settings.port)
            }
            _ => self.url(),
        }
    }

    /// The line for `/etc/hosts` of hosts. `None`: the user's own DNS resolves the name.
    pub(crate) fn hosts_line(&self) -> Option<String> {
        let address = self.current.filter(|_| !self.settings.external_dns)?;
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
    // Right after the loss of a host, no API may answer, because etcd elects a new leader.
    let is_down = |owner: &Host| match cluster.facts(owner) {
        None => cluster.is_initialised(),
        Some(facts) => cluster.state.answered && !ClusterState::of(facts).answered,
    };
    let moves = !endpoint.external_dns && owner.is_some_and(is_down);
    Some(if moves { cluster.api_host.internal_address } else { address })
}
