//! Find a backup of etcd.

use std::time::Duration;

use kk_config::Host;
use kk_engine::{HostWork, Task, actions::Command};

use super::{VERIFY, take_snapshot::into_slot};
use crate::{
    base::{shell::script, slots},
    model::inputs::Inputs,
};

/// Finds a backup that the host has made.
pub(super) fn task(inputs: &Inputs, host: &Host, name: &str) -> Task {
    let directory = inputs.spec.etcd.backup_dir.trim_end_matches('/');
    let text = script(
        &[("backup", &format!("{directory}/{name}"))],
        &[VERIFY, include_str!("find_backup.sh")].concat(),
    );
    let find = Command::new(format!("look at {name}"), text).output(into_slot(directory, {
        let name = name.to_owned();
        move |found| found == name
    }));
    Task::new("find_backup", "Find a backup of etcd")
        .timeout(Duration::from_mins(10))
        .on(&host.name, HostWork::new(vec![Box::new(find)]).provides(slots::snapshot_slot().key()))
}
