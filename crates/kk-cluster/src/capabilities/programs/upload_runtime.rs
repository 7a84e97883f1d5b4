//! Upload the binaries of the runtime and of etcd, which start first. Running components get their binaries in their turns.

use kk_config::Role;
use kk_engine::{HostWork, Task};

use super::{UPLOAD_TIMEOUT, UploadPrograms, waits_for_turn};
use crate::{
    base::{requirements::ProgramStage, slots},
    model::inputs::Inputs,
};

/// Runs in the background of the lane, which writes settings meanwhile. etcd and control planes are first, because all other
/// nodes wait for them.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("upload_runtime", "Upload runtime").timeout(UPLOAD_TIMEOUT).background();
    for (host, _) in inputs.hosts() {
        let mut components = inputs.requirements.programs(host, ProgramStage::Runtime);
        components.retain(|component| !waits_for_turn(inputs, host, *component));
        let mut work = HostWork::new(vec![Box::new(UploadPrograms::new(inputs, host, &components))])
            .provides(slots::runtime_programs_slot(&host.name));
        if [Role::Etcd, Role::ControlPlane].iter().any(|role| host.has_role(role)) {
            work = work.priority(1);
        }
        for component in components {
            work = work.needs(slots::fetched_slot(component, inputs.arch(host)).key());
        }
        task = task.on(&host.name, work);
    }
    task
}
