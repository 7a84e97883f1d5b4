//! The order in which hosts get a load balancer or its changes.

use std::time::Duration;

use kk_config::Host;
use kk_engine::{Action, HostWork, Retry, Task};

use crate::{
    base::{
        rollout::{Candidate, Rollout},
        slots,
    },
    model::inputs::Inputs,
};

/// The work for one host of a load balancer.
pub(super) struct Work<'a> {
    pub host: &'a Host,
    /// Whether the load balancer runs there.
    pub runs: bool,
    /// Whether its configuration or its pod changes.
    pub changes: bool,
    pub actions: Vec<Box<dyn Action>>,
}

/// The task of these hosts. One host gets the changes before the others. Its actions show that the changes work only if they end
/// with a wait. A host begins when it has joined and has the images; hosts outside of the command have joined before.
pub(super) fn in_turns(inputs: &Inputs, program: &'static str, task: Task, works: Vec<Work<'_>>) -> Task {
    let candidates: Vec<_> = works
        .iter()
        .map(|work| Candidate { host: work.host, runs: work.runs, changes: work.changes })
        .collect();
    let rollout = Rollout::new(program, &candidates);
    let mut task = task.timeout(Duration::from_mins(4)).retry(Retry::times(3));
    for Work { host, changes, actions, .. } in works {
        let mut work = HostWork::new(actions);
        if inputs.scope.contains(host) {
            work = work.needs(slots::joined_slot(&host.name));
            if !inputs.options.skip_pull_images {
                work = work.needs(slots::node_images_slot(&host.name));
            }
        }
        if changes {
            work = rollout.after_first(host, work);
        }
        task = task.on(&host.name, rollout.shows_first(host, work));
    }
    rollout.in_turns(task)
}
