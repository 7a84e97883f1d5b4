//! etcd again, from a snapshot: every member that answers begins with it, as one new cluster of etcd. Others join that later,
//! by a create.
//!
//! A mark on the hosts of etcd says that a restore has begun and not ended: nothing else may be done then, because some
//! members may have the data of before. Running the restore again ends it.

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
    /// The file.
    pub path: PathBuf,
    /// Of its content.
    pub sha256: String,
    /// When it was taken or written.
    pub time: String,
    /// What it says about itself.
    pub(crate) content: Content,
}

impl Snapshot {
    /// Where it is on a host.
    fn on_host(&self) -> String {
        format!("/var/lib/kubekey-restore/{}.db", self.sha256)
    }
}

/// Sends it to all members and has them verify it. Nothing of the cluster is changed.
pub(crate) fn send(inputs: &Inputs, snapshot: &Snapshot) -> Module {
    let tasks = vec![send_snapshot::task(inputs, snapshot), check_snapshot::task(inputs, snapshot)];
    Module::new("etcd-restore", tasks)
}

/// Takes back what [`send`] has done.
pub(crate) fn take_back(inputs: &Inputs, snapshot: &Snapshot) -> Module {
    Module::new("etcd-restore", vec![remove_snapshot::task(inputs, snapshot)])
}

/// The hosts whose members take part: etcd is installed there.
pub(crate) fn members<'a>(inputs: &Inputs<'a>) -> Vec<(&'a Host, &'a Facts)> {
    let installed = |facts: &Facts| facts.files.contains_key(ETCD_ENVIRONMENT);
    inputs.etcd_hosts().into_iter().filter(|(_, facts)| installed(facts)).collect()
}

/// The hosts whose API servers stop, whatever they have of etcd.
pub(crate) fn api_servers<'a>(inputs: &Inputs<'a>) -> Vec<(&'a Host, &'a Facts)> {
    let installed = |facts: &Facts| facts.files.contains_key(KUBELET_CONF);
    inputs.control_planes().into_iter().filter(|(_, facts)| installed(facts)).collect()
}

/// Everything that is told to etcd stops first, and begins again when all members have the snapshot.
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

/// What the mark holds when the member of its host has the snapshot and is healthy: then nothing can mix any more.
const STARTED: &str = "started\n";

/// What a restore that has not ended stands in the way of: everything but itself.
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

/// Adds to a host's work that it waits for something on all these.
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
