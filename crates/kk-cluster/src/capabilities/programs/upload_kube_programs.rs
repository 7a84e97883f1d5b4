//! Upload kubeadm and the kubelet while the runtime and etcd start. A running kubelet gets its binary in its turn.

use kk_engine::{HostWork, Task};

use super::{UPLOAD_TIMEOUT, UploadPrograms, waits_for_turn};
use crate::{
    base::{requirements::ProgramStage, slots},
    model::inputs::Inputs,
};

/// Runs in the background of the lane, after the binaries of the runtime, so that uploads are in the order of need. The first
/// control plane is served before the others, because other nodes join only after its `kubeadm init`.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task =
        Task::new("upload_kube_programs", "Upload Kubernetes programs").timeout(UPLOAD_TIMEOUT).background();
    let first = inputs.api_host;
    for (host, _) in inputs.nodes() {
        let mut components = inputs.requirements.programs(host, ProgramStage::Join);
        components.retain(|component| !waits_for_turn(inputs, host, *component));
        let mut work = HostWork::new(vec![Box::new(UploadPrograms::new(inputs, host, &components))])
            .needs(slots::runtime_programs_slot(&host.name))
            .provides(slots::kube_programs_slot(&host.name));
        for component in components {
            work = work.needs(slots::fetched_slot(component, inputs.arch(host)).key());
        }
        if host.name != first.name {
            work = work.after(slots::kube_programs_slot(&first.name));
        }
        task = task.on(&host.name, work);
    }
    task
}
