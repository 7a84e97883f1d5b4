//! Upload the runtime's and etcd's programs: they start first.

use kk_config::Role;
use kk_engine::{HostWork, Task};

use super::UploadPrograms;
use crate::{inputs::Inputs, requirements::ProgramStage, slots};

/// In the background of the lane, which writes settings meanwhile. etcd and control planes come first: all other nodes wait
/// for them.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("upload_runtime", "Upload runtime")
        .timeout(std::time::Duration::from_hours(1))
        .background();
    for (host, _) in inputs.hosts() {
        let components = inputs.requirements.programs(host, ProgramStage::Runtime);
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
