//! Start the API servers again.

use kk_engine::{
    HostWork, Task,
    actions::{Command, WaitUntil},
};

use super::{after, of_members};
use crate::{
    base::{api_server, host_layout::KUBECTL, slots},
    model::inputs::Inputs,
};

/// Starts the kubelets, which start the API servers.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("start_api_servers", "Start the API servers again");
    for (host, _) in super::api_servers(inputs) {
        let server = api_server::url(host);
        let ready = format!("{KUBECTL}kubectl --server {server} --request-timeout 5s get --raw /readyz");
        let start = Command::new("start the kubelet", "systemctl start kubelet.service\n");
        let wait = WaitUntil::new("the API server is ready", ready)
            .hint("", "see \"crictl ps -a\" and \"journalctl -u kubelet\" on this host");
        let work = HostWork::new(vec![Box::new(start), Box::new(wait)])
            .provides(slots::api_server_started_slot(&host.name));
        task = task.on(&host.name, after(work, of_members(inputs, slots::etcd_healthy_slot)));
    }
    task
}
