//! Restores etcd from a snapshot: all members that answer start with it as a new etcd cluster. Other members join this cluster
//! later, by a create.
//!
//! A mark on the hosts of etcd shows that a restore has begun and is not finished. Other commands are refused then, because some
//! members may have the previous data. Running the restore again finishes it.

mod check_snapshot;
pub(crate) mod compare;
mod content;
mod end_restore;
mod open_snapshot;
mod remove_snapshot;
mod restore_members;
mod send_snapshot;
mod start_api_servers;
mod start_members;
mod stop_api_servers;
mod stop_members;

use std::path::PathBuf;

pub(crate) use content::Content;
use kk_config::Host;
use kk_engine::{Facts, FileFact, HostWork, Module, SlotKey};

use open_snapshot::taken_at;

use crate::{
    base::{
        findings::Findings,
        host_layout::{ETCD_ENVIRONMENT, KUBELET_CONF, RESTORING},
        slots,
    },
    model::inputs::Inputs,
};

/// A snapshot on the control machine.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The path of the file.
    pub path: PathBuf,
    /// The SHA-256 of its content.
    pub sha256: String,
    /// When it was taken or written.
    pub time: String,
    /// The data by which its cluster is identified.
    pub(crate) content: Content,
}

impl Snapshot {
    /// The path of the snapshot on a host.
    fn on_host(&self) -> String {
        format!("/var/lib/kubekey-restore/{}.db", self.sha256)
    }
}

/// Sends the snapshot to all members and verifies it there. Nothing in the cluster changes.
pub(crate) fn send(inputs: &Inputs, snapshot: &Snapshot) -> Module {
    let tasks = vec![send_snapshot::task(inputs, snapshot), check_snapshot::task(inputs, snapshot)];
    Module::new("etcd-restore", tasks)
}

/// Undoes [`send`].
pub(crate) fn take_back(inputs: &Inputs, snapshot: &Snapshot) -> Module {
    Module::new("etcd-restore", vec![remove_snapshot::task(inputs, snapshot)])
}

/// The hosts whose members are restored: etcd is installed there.
pub(crate) fn members<'a>(inputs: &Inputs<'a>) -> Vec<(&'a Host, &'a Facts)> {
    let installed = |facts: &Facts| facts.files.contains_key(ETCD_ENVIRONMENT);
    inputs.etcd_hosts().into_iter().filter(|(_, facts)| installed(facts)).collect()
}

/// The hosts whose API servers stop, with or without a member of etcd.
pub(crate) fn api_servers<'a>(inputs: &Inputs<'a>) -> Vec<(&'a Host, &'a Facts)> {
    let installed = |facts: &Facts| facts.files.contains_key(KUBELET_CONF);
    inputs.control_planes().into_iter().filter(|(_, facts)| installed(facts)).collect()
}

/// Everything that writes to etcd stops first, and starts again when all members have the snapshot.
pub(crate) fn restore(inputs: &Inputs, snapshot: &Snapshot) -> Module {
    let tasks = vec![
        stop_api_servers::task(inputs),
        stop_members::task(inputs),
        restore_members::task(inputs, snapshot),
        start_members::task(inputs),
        end_restore::task(inputs, snapshot),
        start_api_servers::task(inputs),
    ];
    Module::new("etcd-restore", tasks)
}

/// The content of the mark after the member of its host was healthy with the snapshot: from then on, different histories cannot
/// mix.
const STARTED: &str = "started\n";

/// Reports an unfinished restore, which blocks every command except the restore itself.
pub(crate) fn findings(inputs: &Inputs, found: &mut Findings) {
    for (host, facts) in inputs.etcd_hosts() {
        let is_open = |mark: &FileFact| mark.sha256 != kk_util::sha256(STARTED);
        if facts.files.get(RESTORING).is_some_and(is_open) {
            found.error(
                host,
                "a restore of etcd was started on this host and is not finished",
                "run kk etcd restore again, with the same snapshot or another",
            );
        }
    }
}

/// Makes the work of a host wait for all these slots.
fn after(mut work: HostWork, keys: impl IntoIterator<Item = SlotKey>) -> HostWork {
    work.needs.extend(keys);
    work
}

fn of_members(inputs: &Inputs, slot: fn(&str) -> SlotKey) -> Vec<SlotKey> {
    members(inputs).iter().map(|(host, _)| slot(&host.name)).collect()
}

fn api_servers_stopped(inputs: &Inputs) -> Vec<SlotKey> {
    api_servers(inputs).iter().map(|(host, _)| slots::api_server_stopped_slot(&host.name)).collect()
}
