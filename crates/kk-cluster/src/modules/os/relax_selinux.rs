//! Let `SELinux` report instead of forbid.

use kk_engine::{HostWork, Task, actions::Command};

use crate::Target;

/// Permissive, not disabled: labels stay in order, and `kk delete cluster` can turn it back on without a relabel.
const SCRIPT: &str = "
if [ -e /etc/selinux/config ]; then
    sed 's/^SELINUX=enforcing/SELINUX=permissive/' /etc/selinux/config >config
    kk_put config /etc/selinux/config 644 root:root
fi
setenforce 0
";

/// Only where `SELinux` enforces.
pub(super) fn task(target: &Target) -> Task {
    let mut task = Task::new("relax_selinux", "Set SELinux to permissive");
    for host in target.spec.nodes() {
        let action =
            Command::new("set SELinux to permissive", SCRIPT).when(|facts| facts.selinux == "enforcing");
        task = task.on(&host.name, HostWork::new(vec![Box::new(action)]));
    }
    task
}
