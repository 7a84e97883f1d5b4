//! Send the snapshot to the members.

use std::time::Duration;

use kk_connector::UploadFile;
use kk_engine::{HostWork, Task, actions::Upload};

use super::Snapshot;
use crate::{base::slots, model::inputs::Inputs};

/// The file is in the ownership record of the host, so that a delete removes it after a killed run.
pub(super) fn task(inputs: &Inputs, snapshot: &Snapshot) -> Task {
    let mut task = Task::new("send_snapshot", "Send the snapshot").timeout(Duration::from_hours(1));
    for (host, _) in super::members(inputs) {
        let upload = Upload::new(vec![UploadFile {
            source: snapshot.path.clone(),
            target: snapshot.on_host(),
            mode: 0o600,
            sha256: snapshot.sha256.clone(),
        }]);
        let work = HostWork::new(vec![Box::new(upload)]).provides(slots::snapshot_sent_slot(&host.name));
        task = task.on(&host.name, work);
    }
    task
}
