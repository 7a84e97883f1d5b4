//! The way back: what a cluster put on a host goes, what it replaced comes back, and nothing else is touched.
//!
//! All hosts at once: no step needs the API or a quorum of etcd, because all of it goes. User data (`/var/openebs`,
//! `/var/lib/rook`, volumes elsewhere) and the host's own packet filter rules stay.

mod clean_network;
mod forget_cluster;
mod remove_files;
mod remove_pods;
mod stop_etcd;
mod stop_kubelet;
mod take_back;

use std::collections::BTreeMap;

use kk_config::{Host, Spec};
use kk_engine::{Facts, Module, Slot};

/// What the tasks of a removal are built from.
pub(crate) struct Removal<'a> {
    /// The cluster's file.
    pub spec: &'a Spec,
    /// What the hosts are.
    pub facts: &'a BTreeMap<String, Facts>,
    /// The runtime goes, too.
    pub all: bool,
    /// `kubekey/<cluster>` on this machine.
    pub folder: std::path::PathBuf,
}

impl Removal<'_> {
    /// Whether anything that this program made is on the host. It is written down before it is made.
    fn is_needed(&self, host: &Host) -> bool {
        let facts = &self.facts[&host.name];
        let data = &self.spec.registry.containerd_data_dir;
        facts.owned.entries().iter().any(|entry| self.all || !take_back::is_runtime(&entry.line, data))
    }

    /// The hosts with a cluster that somebody else made: a wrong address in the file must not end it.
    pub(crate) fn foreign(&self) -> Vec<&str> {
        let is_foreign = |host: &&Host| {
            let facts = &self.facts[&host.name];
            let holds = facts.files.contains_key("/etc/kubernetes/kubelet.conf")
                || facts.units.get("kubelet.service").is_some_and(|unit| unit.active);
            holds && !crate::precheck::facts.owns("/etc/systemd/system/kubelet.service")
        };
        self.spec.hosts.iter().filter(is_foreign).map(|host| host.name.as_str()).collect()
    }

    /// The hosts that hold something.
    fn hosts(&self) -> Vec<&Host> {
        self.spec.hosts.iter().filter(|host| self.is_needed(host)).collect()
    }
}

/// The host is as it was.
fn removed(host: &str) -> Slot<()> {
    Slot::of_host("removed", host)
}

/// Removes the cluster from every host, then from this machine.
pub(crate) fn module(inputs: &Inputs) -> Module {
    Module::new(
        "removal",
        vec![
            stop_kubelet::task(removal),
            remove_pods::task(removal),
            stop_etcd::task(removal),
            clean_network::task(removal),
            remove_files::task(removal),
            take_back::task(removal),
            forget_cluster::task(removal),
        ],
    )
}
