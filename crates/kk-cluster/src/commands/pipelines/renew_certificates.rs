//! `kk certs renew`.

use crate::{
    capabilities::nodes::record_joins,
    model::inputs::{Inputs, Scope},
};

/// The hosts that are in the cluster: what a create does for them, with other certificates.
pub(crate) fn scope(inputs: &Inputs) -> Scope {
    let is_there = |host: &&kk_config::Host| !host.is_node() || !record_joins::is_unfinished(inputs, host);
    Scope::Hosts(inputs.spec.hosts.iter().filter(is_there).map(|host| host.name.clone()).collect())
}
