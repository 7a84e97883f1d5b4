//! Load kernel modules, now and at boot.

use kk_engine::{HostWork, Task, actions::KernelModules};

use crate::model::inputs::Inputs;

/// Modules that are built into the kernel count as loaded.
pub(super) fn task(inputs: &Inputs) -> Task {
    let modules = super::kernel_modules(inputs.spec);
    let mut task = Task::new("load_kernel_modules", "Load kernel modules");
    for (host, _) in inputs.nodes() {
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
