//! Mark nodes whose address changes.

use kk_engine::{HostWork, Task, actions::File};

use crate::capabilities::nodes::moving;
use crate::{base::host_layout::MOVING, model::inputs::Inputs};

/// After the kubelet has reported the new address, only the mark shows that pods still have the old one.
pub(crate) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("mark_moves", "Mark nodes that move");
    for (host, moved) in moving::all(inputs) {
        task = task.on(&host.name, HostWork::new(vec![Box::new(File::text(MOVING, moved.mark()))]));
    }
    task
}
