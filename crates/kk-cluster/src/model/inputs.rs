//! Everything that the tasks of a command are built from. The type is the same for all commands; it is read-only, and the
//! pipeline made from it is data.

use std::{collections::BTreeSet, ops::Deref, path::PathBuf, sync::Arc};

use kk_artifact::{Component, Store};
use kk_config::{Arch, Host};
use kk_engine::Facts;

use crate::{
    base::{
        artifacts::Programs, cluster_state::ClusterState, pki::Pki, requirements::Requirements,
        supply::Wanted, token::Token,
    },
    model::cluster::{Cluster, Scope},
};

/// The inputs of a pipeline.
pub(crate) struct Inputs<'a> {
    /// The cluster from which the requirements were derived.
    pub cluster: Cluster<'a>,
    /// The requirements of all capabilities together.
    pub requirements: Requirements,
    /// Binaries for the architectures of the hosts.
    pub programs: Programs,
    /// Certificates of etcd.
    pub pki: Arc<Pki>,
    /// Addons of the file.
    pub addons: Vec<Wanted>,
    /// The token by which nodes join in this run.
    pub token: Token,
    /// The ID of this run's owner, by which hosts are locked.
    pub owner: String,
    /// `kubekey/<cluster>` on the control machine.
    pub directory: PathBuf,
    /// The store of downloads.
    pub store: Arc<Store>,
}

impl<'a> Deref for Inputs<'a> {
    type Target = Cluster<'a>;

    fn deref(&self) -> &Cluster<'a> {
        &self.cluster
    }
}

#[cfg(test)]
impl std::ops::DerefMut for Inputs<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.cluster
    }
}

impl<'a> Inputs<'a> {
    /// The same inputs with the answers of another control plane's API.
    pub(crate) fn asked_at(mut self, host: &'a Host, state: ClusterState) -> Self {
        (self.cluster.api_host, self.cluster.state) = (host, state);
        self
    }

    /// The same inputs for a part of the hosts.
    pub(crate) fn within(mut self, scope: Scope) -> Self {
        self.cluster.scope = scope;
        let wanted = self.wanted_programs();
        self.programs.retain(|program, _| wanted.contains(program));
        self
    }

    /// As [`wanted_programs`].
    pub(crate) fn wanted_programs(&self) -> BTreeSet<(Component, Arch)> {
        wanted_programs(&self.cluster, &self.requirements)
    }
}

/// The binaries that the hosts in scope need, for their architectures.
pub(crate) fn wanted_programs(cluster: &Cluster, requirements: &Requirements) -> BTreeSet<(Component, Arch)> {
    let of_host = |(host, _): (&Host, &Facts)| {
        let programs = requirements.programs[&host.name].iter();
        programs.map(|(_, component)| (*component, cluster.arch(host))).collect::<Vec<_>>()
    };
    cluster.hosts().into_iter().flat_map(of_host).collect()
}
