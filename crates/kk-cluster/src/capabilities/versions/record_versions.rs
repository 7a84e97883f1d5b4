//! Record the versions of the cluster on its control planes.

use kk_engine::{HostWork, Task, actions::File};

use super::{Recorded, recorded::PATH};
use crate::model::inputs::Inputs;

/// Runs after everything is installed: the note contains the versions of the cluster, not the versions of a failed attempt.
pub(super) fn task(inputs: &Inputs) -> Task {
    let note = Recorded::of(&inputs.versions).text();
    let mut task = Task::new("record_versions", "Record versions");
    for (host, _) in inputs.control_planes() {
        task = task.on(&host.name, HostWork::new(vec![Box::new(File::text(PATH, note.clone()))]));
    }
    task
}
