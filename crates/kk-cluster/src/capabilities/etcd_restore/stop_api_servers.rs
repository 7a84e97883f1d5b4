//! Stop the API servers.

use kk_engine::{HostWork, Task, actions::Command};

use crate::{base::slots, model::inputs::Inputs};

/// Stops the API servers, and their kubelets, which would start them again. An API server that has seen both histories would
/// answer from the old one.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("stop_api_servers", "Stop the API servers");
    for (host, _) in super::api_servers(inputs) {
        let stop = Command::new("stop the kubelet and the API server", include_str!("stop_api_server.sh"));
        let work = HostWork::new(vec![Box::new(stop)]).provides(slots::api_server_stopped_slot(&host.name));
        task = task.on(&host.name, work);
    }
    task
}
