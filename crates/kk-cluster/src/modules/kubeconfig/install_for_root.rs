//! Install the kubeconfig for root on the control planes.

use kk_engine::{HostWork, Task, actions::Command};

use crate::{Target, modules::slots};

const ADMIN: &str = "/etc/kubernetes/admin.conf";
const ROOT: &str = "/root/.kube/config";

/// A copy: a link would break for tools that refuse other people's files.
pub(super) fn task(target: &Target) -> Task {
    let mut task = Task::new("install_for_root", "Install kubeconfig for root");
    for host in target.spec.control_planes() {
        let copy = Command::new(format!("write {ROOT}"), format!("kk_put {ADMIN} {ROOT} 600 root:root\n"))
            .when(|facts| {
                let sum = |path: &str| facts.files.get(path).map(|file| file.sha256.clone());
                sum(ADMIN).is_none() || sum(ADMIN) != sum(ROOT)
            });
        task =
            task.on(&host.name, HostWork::new(vec![Box::new(copy)]).needs(slots::joined(&host.name).key()));
    }
    task
}
