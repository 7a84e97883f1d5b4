//! Send kubeadm and the kubelet, while the runtime and etcd start.

use kk_engine::{HostWork, Task};

use super::kube_components;
use crate::{Target, modules::slots, upload_programs::UploadPrograms};

/// Beside the lane, after the runtime's programs: bytes travel in the order of need.
pub(super) fn task(target: &Target) -> Task {
    let mut task = Task::new("upload_kube_programs", "Send Kubernetes programs")
        .timeout(std::time::Duration::from_hours(1))
        .beside();
    for host in target.spec.nodes() {
        let components = kube_components(host);
        let mut work = HostWork::new(vec![Box::new(UploadPrograms::new(target, host, &components))])
            .needs(slots::runtime_programs(&host.name).key())
            .provides(slots::kube_programs(&host.name).key());
        for component in components {
            work = work.needs(super::fetched(component, target.arch(host)).key());
        }
        task = task.on(&host.name, work);
    }
    task
}
