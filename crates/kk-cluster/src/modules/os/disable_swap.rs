//! Turn swap off, now and at boot.

use kk_engine::{HostWork, Task, actions::SwapOff};

use crate::Target;

/// The kubelet does not start with swap on.
pub(super) fn task(target: &Target) -> Task {
    let mut task = Task::new("disable_swap", "Turn swap off");
    for host in target.spec.nodes() {
        task = task.on(&host.name, HostWork::new(vec![Box::new(SwapOff)]));
    }
    task
}
