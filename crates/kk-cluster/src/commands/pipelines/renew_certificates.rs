//! `kk certs renew`.

use crate::{
    capabilities::nodes::record_joins,
    model::cluster::{Cluster, Scope},
};

/// The hosts that are in the cluster. They get the same work as in a create, with renewed certificates.
pub(crate) fn scope(cluster: &Cluster) -> Scope {
    let is_there = |host: &&kk_config::Host| !host.is_node() || !record_joins::is_unfinished(cluster, host);
    Scope::Hosts(cluster.spec.hosts.iter().filter(is_there).map(|host| host.name.clone()).collect())
}
