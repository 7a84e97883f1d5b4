//! Remove virtual servers of IPVS by kube-proxy's own program.

use std::time::Duration;

use kk_engine::{HostWork, Task, actions::Command};

use crate::model::inputs::Inputs;

/// On every node, while its containers are still there. A node whose kernel has none has nothing to do.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task =
        Task::new("remove_virtual_servers", "Remove virtual servers of IPVS").timeout(Duration::from_mins(2));
    for (host, _) in inputs.nodes() {
        let remove =
            Command::new("remove virtual servers of kube-proxy", include_str!("remove_virtual_servers.sh"));
        task = task.on(&host.name, HostWork::new(vec![Box::new(remove)]));
    }
    task
}
