//! Install the kubeconfig for root on the control planes.

use kk_engine::{HostWork, Task, actions::Command};

use super::ROOT;
use crate::{host_layout::ADMIN_CONF, inputs::Inputs, slots};

/// A copy: a link would break for tools that refuse other people's files.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("install_for_root", "Install kubeconfig for root");
    for (host, _) in inputs.control_planes() {
        let copy =
            Command::new(format!("write {ROOT}"), format!("kk_put {ADMIN_CONF} {ROOT} 600 root:root\n"))
                .when(|facts| {
                    let sum = |path: &str| facts.files.get(path).map(|file| file.sha256.clone());
                    sum(ADMIN_CONF).is_none() || sum(ADMIN_CONF) != sum(ROOT)
                });
        task = task.on(&host.name, HostWork::new(vec![Box::new(copy)]).needs(slots::joined_slot(&host.name)));
    }
    task
}
