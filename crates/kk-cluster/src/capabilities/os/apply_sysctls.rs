//! Apply kernel settings, now and at boot.

use kk_engine::{HostWork, Task, actions::Sysctls};

use crate::model::inputs::Inputs;

/// One drop-in file. Live values that differ are set, and their previous values are recorded.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("apply_sysctls", "Apply kernel settings");
    for (host, _) in inputs.nodes() {
        let action = Sysctls::new("/etc/sysctl.d/99-kubekey.conf", super::sysctls(inputs.spec));
        task = task.on(&host.name, HostWork::new(vec![Box::new(action)]));
    }
    task
}
