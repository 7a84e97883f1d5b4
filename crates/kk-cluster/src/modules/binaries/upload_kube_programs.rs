//! Send kubeadm and the kubelet, while the runtime and etcd start.

use kk_engine::{HostWork, Task};

use super::{UploadPrograms, kube_components};
use crate::{Target, modules::slots};

/// Beside the lane, after the runtime's programs: bytes travel in the order of need. Those of the first control plane go
/// before the others', whose nodes join only after its `kubeadm init`.
pub(super) fn task(target: &Target) -> Task {
    let mut task = Task::new("upload_kube_programs", "Send Kubernetes programs")
        .timeout(std::time::Duration::from_hours(1))
        .beside();
    let first = target.spec.first_control_plane();
    for host in target.spec.nodes() {
        let components = kube_components(host);
        let mut work = HostWork::new(vec![Box::new(UploadPrograms::new(target, host, &components))])
            .needs(slots::runtime_programs(&host.name).key())
            .provides(slots::kube_programs(&host.name).key());
        for component in components {
            work = work.needs(super::fetched(component, target.arch(host)).key());
        }
        if host.name != first.name {
            work = work.awaits(slots::kube_programs(&first.name).key());
        }
        task = task.on(&host.name, work);
    }
    task
}
