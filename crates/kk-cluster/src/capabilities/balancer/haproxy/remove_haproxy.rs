//! Remove haproxy from hosts on which the file no longer wants it.

use kk_config::Balancer;
use kk_engine::{HostWork, Task, actions::Command};

use super::{is_installed, runs_on};
use crate::model::inputs::Inputs;

/// Runs after the node and its pods use another address. The kubelet ends the pod. The manifest is last: while it is there, a later
/// run removes the rest.
const REMOVE: &str = "rm -rf /etc/kubekey/haproxy\nrm -f /etc/kubernetes/manifests/haproxy.yaml\n";

pub(crate) fn task(inputs: &Inputs) -> Task {
    let is_wanted = inputs.spec.control_plane_endpoint.balancer == Balancer::Haproxy;
    let mut task = Task::new("remove_haproxy", "Remove haproxy");
    for (host, facts) in inputs.nodes() {
        if is_installed(facts) && !(is_wanted && runs_on(host)) {
            let remove = Command::new("remove haproxy", REMOVE);
            task = task.on(&host.name, HostWork::new(vec![Box::new(remove)]));
        }
    }
    task
}
