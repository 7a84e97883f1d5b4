//! Upload kubectl and the CNI plugins, which are needed last. If containerd runs, the plugins are uploaded in its turn.

use kk_engine::{HostWork, Task};

use super::{UPLOAD_TIMEOUT, UploadPrograms, waits_for_turn};
use crate::{
    base::{requirements::ProgramStage, slots},
    model::inputs::Inputs,
};

/// Runs in the background of the lane, after the binaries that make the host a node.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task =
        Task::new("upload_node_tools", "Upload kubectl and CNI plugins").timeout(UPLOAD_TIMEOUT).background();
    for (host, _) in inputs.nodes() {
        let mut components = inputs.requirements.programs(host, ProgramStage::Tools);
        components.retain(|component| !waits_for_turn(inputs, host, *component));
        let mut work = HostWork::new(vec![Box::new(UploadPrograms::new(inputs, host, &components))])
            .needs(slots::kube_programs_slot(&host.name))
            .provides(slots::node_tools_slot(&host.name));
        for component in components {
            work = work.needs(slots::fetched_slot(component, inputs.arch(host)).key());
        }
        task = task.on(&host.name, work);
    }
    task
}
