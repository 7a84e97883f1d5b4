//! Finish the moves of nodes: restart the pods that use the previous address.

use std::time::Duration;

use kk_config::{Host, Role};
use kk_engine::{HostWork, Task, actions::Command};

use super::Moved;
use crate::{
    base::{
        host_layout::MOVING,
        questions::PRINT_BEGAN,
        requirements::Workload,
        rollout::{Candidate, Rollout},
        shell::script,
        slots,
    },
    capabilities::control_plane,
    model::inputs::Inputs,
};

/// Runs when the kubelets use the new address. The mark is removed last. If only the API moves, the nodes that are in the cluster
/// take turns.
pub(crate) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("finish_moves", "Finish the moves of nodes").timeout(Duration::from_mins(8));
    let mut moved = super::all(inputs);
    moved.sort_by_key(|(host, _)| host.has_role(&Role::ControlPlane));
    let in_turns = moved.iter().all(|(_, moved)| *moved == Moved::Api);
    let candidate = |host| Candidate { host, runs: in_turns && inputs.has_joined(host), changes: true };
    let candidates: Vec<_> = moved.iter().map(|(host, _)| candidate(host)).collect();
    let rollout = Rollout::new("moves", &candidates);
    for (host, moved) in moved {
        let (describe, only, begin) = match moved {
            Moved::Node => ("restart the pods with hostNetwork", String::new(), String::new()),
            // The name may have changed after the mark: pods that started in between have the previous address.
            Moved::Api => {
                let begin = format!("touch {MOVING}\n");
                ("restart the pods of kk that use the API", own_workloads(inputs), begin)
            }
        };
        // An empty list would mean all pods.
        let is_needed = moved == Moved::Node || !only.is_empty();
        let restart = Command::new(describe, begin + &restart(host, &only))
            .when(move |_| is_needed)
            .hint("", "see \"crictl pods\" and \"journalctl -u kubelet\" on the host");
        let done = Command::new("record that the node has moved", format!("rm -f {MOVING}"));
        let mut work = HostWork::new(vec![Box::new(restart), Box::new(done)])
            .needs(if inputs.has_joined(host) {
                slots::kubelet_works_slot(&host.name)
            } else {
                slots::joined_slot(&host.name)
            })
            .provides(slots::moved_slot(&host.name));
        // The pods that restart here use the API.
        work.needs.extend(control_plane::before_joins(inputs));
        work = rollout.after_first(host, work);
        task = task.on(&host.name, rollout.shows_first(host, work));
    }
    rollout.in_turns(task)
}

/// The workloads of kk, as namespace/kind/name.
pub(super) fn own_workloads(inputs: &Inputs) -> String {
    let workloads = inputs.requirements.workloads();
    let name = |one: &Workload| format!("{}/{}", one.namespace, one.path);
    workloads.iter().map(name).collect::<Vec<_>>().join(" ")
}

pub(crate) fn restart(host: &Host, only: &str) -> String {
    let address = host.internal_address.to_string();
    let began = format!("began() {{\n{PRINT_BEGAN}\n}}\n");
    let variables = [("node", host.name.as_str()), ("address", &address), ("mark", MOVING), ("only", only)];
    began + &script(&variables, include_str!("restart_pods.sh"))
}
