//! Send kubectl and the CNI plugins: they are needed last.

use kk_engine::{HostWork, Task};

use super::{UploadPrograms, tool_components};
use crate::{Target, modules::slots};

/// Beside the lane, after what makes the host a node.
pub(super) fn task(target: &Target) -> Task {
    let mut task = Task::new("upload_node_tools", "Send kubectl and CNI plugins")
        .timeout(std::time::Duration::from_hours(1))
        .beside();
    for host in target.spec.nodes() {
        let components = tool_components(host);
        let mut work = HostWork::new(vec![Box::new(UploadPrograms::new(target, host, &components))])
            .needs(slots::kube_programs(&host.name).key())
            .provides(slots::node_tools(&host.name).key());
        for component in components {
            work = work.needs(super::fetched(component, target.arch(host)).key());
        }
        task = task.on(&host.name, work);
    }
    task
}
