//! Wait until all nodes are Ready, and what makes them a network runs.

use std::{fmt::Write as _, time::Duration};

use kk_config::Host;
use kk_connector::quote;
use kk_engine::{HostWork, Task, actions::Command};

use crate::{actions::ForJoined, host_layout::KUBECTL, inputs::Inputs, slots};

/// By watches of the API, not by polling. What is not ready is shown.
fn script(workloads: &[(&str, &str)], nodes: &[&Host]) -> String {
    let names: Vec<_> = nodes.iter().map(|host| quote(&host.name)).collect();
    let mut text = format!("{KUBECTL}{}nodes_are_ready {}\n", include_str!("ready.sh"), names.join(" "));
    for (namespace, workload) in workloads {
        let _ = writeln!(text, "pods_are_ready {namespace} {workload}");
    }
    text
}

pub(super) fn task(inputs: &Inputs) -> Task {
    let workloads = inputs.requirements.workloads();
    let wait = ForJoined::new(inputs, move |nodes| {
        Command::new("wait until nodes are Ready and their pods run", script(&workloads, nodes))
            .only_waits()
            .hint(
                "",
                "look at the pods that are not ready: \"kubectl get pods -A\", \"kubectl describe pod …\"",
            )
    });
    let mut work = HostWork::new(vec![Box::new(wait)])
        .needs(slots::initialised_slot())
        .needs(slots::node_tools_slot(&inputs.api_host.name));
    for (host, _) in inputs.nodes() {
        work = work.after(slots::joined_slot(&host.name));
    }
    Task::new("wait_until_ready", "Wait until nodes are Ready")
        .timeout(Duration::from_mins(11))
        .on(&inputs.api_host.name, work)
}
