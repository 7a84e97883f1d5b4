//! Send the runtime's and etcd's programs: they start first.

use kk_engine::{HostWork, Task};

use super::{UploadPrograms, runtime_components};
use crate::{Target, modules::slots};

/// Beside the lane, which writes settings meanwhile.
pub(super) fn task(target: &Target) -> Task {
    let mut task =
        Task::new("upload_runtime", "Send runtime").timeout(std::time::Duration::from_hours(1)).beside();
    for host in &target.spec.hosts {
        let components = runtime_components(host);
        let mut work = HostWork::new(vec![Box::new(UploadPrograms::new(target, host, &components))])
            .provides(slots::runtime_programs(&host.name).key());
        for component in components {
            work = work.needs(super::fetched(component, target.arch(host)).key());
        }
        task = task.on(&host.name, work);
    }
    task
}
