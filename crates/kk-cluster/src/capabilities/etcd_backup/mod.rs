//! Backs up etcd: the hosts of etcd make backups by a timer, and commands take snapshots. The files stay when a cluster is
//! deleted.

mod check;
mod fetch_snapshot;
mod find_backup;
mod schedule_backups;
mod stop_backups;
mod take_snapshot;

#[cfg(test)]
pub(crate) use check::NEWEST;
pub(crate) use check::{newest_backup, unanswered};
use std::path::PathBuf;

use kk_config::{Host, Role};
use kk_engine::{Module, ProbeSpec, Task};

use crate::{
    base::{error::BuildError, findings::Findings, host_layout::RESTORING, shell::script},
    capabilities::etcd::{HEALTHY_FUNCTION, etcdctl},
    model::{
        capability::{Capability, Stage},
        inputs::Inputs,
    },
};

/// Functions that verify a snapshot.
pub(crate) const VERIFY: &str = include_str!("verify_snapshot.sh");

/// Backups of etcd.
pub(crate) struct EtcdBackup;

impl Capability for EtcdBackup {
    fn name(&self) -> &'static str {
        "etcd-backup"
    }

    fn stage(&self) -> Stage {
        Stage::Hosts
    }

    fn asks(&self, inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
        if host.has_role(&Role::Etcd) {
            probe.ask(&check::LAST);
            probe.ask(&check::newest(inputs));
            probe.files.insert(RESTORING.into());
        }
    }

    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        check::findings(inputs, found);
    }

    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        Ok(vec![schedule_backups::task(inputs)?])
    }

    fn remove(&self, inputs: &Inputs) -> Vec<Task> {
        vec![stop_backups::task(inputs)]
    }
}

/// Takes a snapshot on a host whose member is healthy, and fetches it to the directory of the cluster on the control machine.
pub(crate) fn snapshot(inputs: &Inputs, host: &Host) -> Module {
    Module::new("etcd-backup", vec![take_snapshot::task(inputs, host), fetch_snapshot::task(inputs, host)])
}

/// Fetches an existing backup from a host.
pub(crate) fn fetch(inputs: &Inputs, host: &Host, name: &str) -> Module {
    Module::new(
        "etcd-backup",
        vec![find_backup::task(inputs, host, name), fetch_snapshot::task(inputs, host)],
    )
}

/// The path of a fetched snapshot on the control machine.
pub(crate) fn fetched(inputs: &Inputs, host: &Host, name: &str) -> PathBuf {
    fetch_snapshot::target(&fetch_snapshot::directory(inputs), &host.name, name)
}

/// The script that makes one backup on a host.
fn program(inputs: &Inputs, host: &Host) -> String {
    let etcd = &inputs.spec.etcd;
    let variables = [
        ("directory", etcd.backup_dir.clone()),
        ("keep", etcd.keep_backup_number.to_string()),
        ("endpoints", etcdctl::local_endpoint(inputs.spec)),
        ("certificate", etcdctl::certificate(host)),
    ];
    let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    format!("#!/bin/sh\n# Written by kk.\n{}", script(&variables, &backup()))
}

/// The commands that make one backup.
fn backup() -> String {
    [VERIFY, &etcdctl::function(""), HEALTHY_FUNCTION, include_str!("backup.sh")].concat()
}

/// The path of the script on a host.
fn path(inputs: &Inputs) -> String {
    format!("{}/etcd-backup.sh", inputs.spec.etcd.backup_script.trim_end_matches('/'))
}
