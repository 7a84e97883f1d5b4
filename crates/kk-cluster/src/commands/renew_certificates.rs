//! `kk certs renew`.

use std::collections::BTreeSet;

use super::session::{Create, Session};
use crate::{
    base::{error::BuildError, findings::Findings, probed::Probed},
    capabilities::nodes::record_joins,
    model::{
        cluster::{Cluster, Scope},
        command::Command,
    },
};

impl Session {
    /// The plan that renews certificates with these names on all hosts of a running cluster, with its findings.
    ///
    /// # Errors
    /// The plan cannot be built.
    pub async fn plan_renew(&self, probed: &Probed, names: BTreeSet<String>) -> Result<Create, BuildError> {
        let inputs = self.inputs_for(Command::Renew(names), probed).await?;
        Box::pin(self.plan_within(inputs, Findings::default(), probed, scope)).await
    }
}

/// The hosts that are in the cluster. They get the same work as in a create, with renewed certificates.
pub(crate) fn scope(cluster: &Cluster) -> Scope {
    let is_there = |host: &&kk_config::Host| !host.is_node() || !record_joins::is_unfinished(cluster, host);
    Scope::Hosts(cluster.spec.hosts.iter().filter(is_there).map(|host| host.name.clone()).collect())
}
