//! Finish the moves of nodes: restart what works with the address of before.

use std::time::Duration;

use kk_config::Host;
use kk_engine::{HostWork, Task, actions::Command};

use super::moves;
use crate::{
    capabilities::{control_plane, kubelet},
    host_layout::MOVING,
    inputs::Inputs,
    shell::script,
    slots,
};

/// Their kubelets run with the new address. The mark goes last.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("finish_moves", "Finish the moves of nodes").timeout(Duration::from_mins(8));
    for host in moves::moving(inputs) {
        let restart = Command::new("restart the pods in the network of the node", restart(host))
            .hint("", "see \"crictl pods\" and \"journalctl -u kubelet\" on the host");
        let done = Command::new("record that the node has moved", format!("rm -f {MOVING}"));
        let mut work = HostWork::new(vec![Box::new(restart), Box::new(done)])
            .needs(slots::kubelet_works_slot(&host.name))
            .provides(slots::moved_slot(&host.name));
        // What starts here asks the API.
        work.needs.extend(control_plane::before_joins(inputs));
        task = task.on(&host.name, work);
    }
    task
}

pub(super) fn restart(host: &Host) -> String {
    let address = host.internal_address.to_string();
    let began = format!("began() {{\n{}\n}}\n", kubelet::PRINT_BEGAN);
    let variables = [("node", host.name.as_str()), ("address", &address), ("mark", MOVING)];
    began + &script(&variables, include_str!("restart_pods.sh"))
}
