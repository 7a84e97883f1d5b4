//! Close the cluster for joins: remove its bootstrap tokens.

use kk_engine::{HostWork, Task, actions::Command};

use crate::{
    base::{encoding::base64, host_layout::KUBECTL, shell::script, slots, token::DESCRIPTION},
    model::inputs::Inputs,
};

/// Runs when no node needs a token any longer, and in the background, because nothing waits for it. A control plane that this run
/// initialises has created a token, too.
pub(super) fn task(inputs: &Inputs) -> Task {
    let task = Task::new("close_for_joins", "Close the cluster for joins").background();
    if inputs.is_initialised() && inputs.joining().is_empty() {
        return task;
    }
    let description = base64(DESCRIPTION.as_bytes());
    let remove = Command::new(
        "remove the bootstrap token",
        format!("{KUBECTL}{}", script(&[("description", &description)], include_str!("close_for_joins.sh"))),
    );
    let host = &inputs.api_host.name;
    let mut work = HostWork::new(vec![Box::new(remove)])
        .needs(slots::initialised_slot())
        .needs(slots::node_tools_slot(host));
    for (host, _) in inputs.nodes() {
        work = work.after(slots::joined_slot(&host.name));
    }
    task.on(host, work)
}
