//! Turn swap off, now and at boot.

use kk_engine::{HostWork, Task, actions::SwapOff};

use crate::inputs::Inputs;

/// The kubelet does not start with swap on.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("disable_swap", "Turn swap off");
    for (host, _) in inputs.nodes() {
        task = task.on(&host.name, HostWork::new(vec![Box::new(SwapOff)]));
    }
    task
}
