//! Check the snapshot on the members.

use std::{sync::Arc, time::Duration};

use kk_engine::{Failure, HostWork, Slots, Task, actions::Command};

use super::Snapshot;
use crate::{
    base::{shell::script, slots},
    capabilities::etcd_backup::VERIFY,
    model::inputs::Inputs,
};

/// Checks the snapshot by etcd's own binary, which also compares the checksum at its end.
pub(super) fn task(inputs: &Inputs, snapshot: &Snapshot) -> Task {
    let mut task = Task::new("check_snapshot", "Check the snapshot").timeout(Duration::from_mins(10));
    for (host, _) in super::members(inputs) {
        let text = script(
            &[("snapshot", &snapshot.on_host())],
            &[VERIFY, include_str!("check_snapshot.sh")].concat(),
        );
        let check = Command::new("check the snapshot", text)
            .hint("", "it is not a snapshot of etcd, or it is damaged: choose another one")
            .output(Arc::new(|printed: &str, slots: &Slots| {
                let words = printed.lines().last().ok_or_else(|| Failure::new("etcdutl said nothing"))?;
                slots.output("etcd snapshot", words.trim());
                Ok(())
            }));
        let work = HostWork::new(vec![Box::new(check)]).needs(slots::snapshot_sent_slot(&host.name));
        task = task.on(&host.name, work);
    }
    task
}
