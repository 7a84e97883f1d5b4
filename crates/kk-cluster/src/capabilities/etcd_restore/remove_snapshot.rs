//! Remove the snapshot from the members.

use kk_connector::quote;
use kk_engine::{HostWork, Task, actions::Command};

use super::Snapshot;
use crate::inputs::Inputs;

/// One that was refused: it is large, and may hold the Secrets of a cluster.
pub(super) fn task(inputs: &Inputs, snapshot: &Snapshot) -> Task {
    let mut task = Task::new("remove_snapshot", "Remove the snapshot from the members");
    for (host, _) in super::members(inputs) {
        let remove = Command::new("remove the snapshot", format!("rm -f {}\n", quote(&snapshot.on_host())));
        task = task.on(&host.name, HostWork::new(vec![Box::new(remove)]));
    }
    task
}
