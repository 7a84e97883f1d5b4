//! End the restore.

use kk_connector::quote;
use kk_engine::{HostWork, Task, actions::Command};

use super::{Snapshot, after, of_members};
use crate::{
    base::{host_layout::RESTORING, slots},
    model::inputs::Inputs,
};

/// Ends the restore when all members are healthy with the snapshot. The previous data stays next to it. An API server that does
/// not start again is left to the create that follows.
pub(super) fn task(inputs: &Inputs, snapshot: &Snapshot) -> Task {
    let mut task = Task::new("end_restore", "End the restore");
    for (host, _) in super::members(inputs) {
        let text = format!(
            "rm -f {} {}\nsystemctl start backup-etcd.timer 2>/dev/null || :\n",
            quote(&snapshot.on_host()),
            quote(RESTORING),
        );
        let work = HostWork::new(vec![Box::new(Command::new("remove the mark of the restore", text))]);
        task = task.on(&host.name, after(work, of_members(inputs, slots::etcd_healthy_slot)));
    }
    task
}
