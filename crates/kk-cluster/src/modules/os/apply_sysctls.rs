//! Apply kernel settings, now and at boot.

use kk_engine::{HostWork, Task, actions::Sysctls};

use crate::Target;

/// One drop-in file; live values that differ are set and remembered.
pub(super) fn task(target: &Target) -> Task {
    let mut task = Task::new("apply_sysctls", "Apply kernel settings");
    for host in target.spec.nodes() {
        let action = Sysctls::new("/etc/sysctl.d/99-kubekey.conf", super::sysctls(target.spec));
        task = task.on(&host.name, HostWork::new(vec![Box::new(action)]));
    }
    task
}
