//! Set `SELinux` to permissive.

use kk_engine::{HostWork, Task, actions::Command};

use crate::model::inputs::Inputs;

/// Runs only on hosts on which `SELinux` is enforcing, unless the file keeps it so.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("relax_selinux", "Set SELinux to permissive");
    let nodes = inputs.nodes().into_iter().filter(|_| inputs.spec.system.relax_selinux);
    for (host, _) in nodes {
        let action = Command::new("set SELinux to permissive", include_str!("relax_selinux.sh"))
            .when(|facts| facts.selinux == "enforcing");
        task = task.on(&host.name, HostWork::new(vec![Box::new(action)]));
    }
    task
}
