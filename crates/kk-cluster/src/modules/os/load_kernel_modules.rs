//! Load kernel modules, now and at boot.

use kk_engine::{HostWork, Task, actions::KernelModules};

use crate::Target;

/// Modules that are built in are loaded already.
pub(super) fn task(target: &Target) -> Task {
    let modules = super::kernel_modules(target.spec);
    let mut task = Task::new("load_kernel_modules", "Load kernel modules");
    for host in target.spec.nodes() {
        task = task.on(
            &host.name,
            HostWork::new(vec![Box::new(KernelModules::new(
                "/etc/modules-load.d/99-kubekey.conf",
                modules.clone(),
            ))]),
        );
    }
    task
}
