//! Remove virtual servers of IPVS by the binary of kube-proxy.

use std::time::Duration;

use kk_engine::{HostWork, Task, actions::Command};

use crate::model::inputs::Inputs;

/// Runs on every node while its containers still exist. If the kernel has no virtual servers, nothing happens.
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
