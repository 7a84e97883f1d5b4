//! Set `SELinux` to permissive.

use kk_engine::{HostWork, Task, actions::Command};

use crate::model::inputs::Inputs;

/// Runs only on hosts on which `SELinux` is enforcing.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("relax_selinux", "Set SELinux to permissive");
    for (host, _) in inputs.nodes() {
        let action = Command::new("set SELinux to permissive", include_str!("relax_selinux.sh"))
            .when(|facts| facts.selinux == "enforcing");
        task = task.on(&host.name, HostWork::new(vec![Box::new(action)]));
    }
    task
}
