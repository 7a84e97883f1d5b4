//! Stop firewalls, if the file requests it.

use kk_engine::{Action, HostWork, Task, actions::Unit};

use crate::model::inputs::Inputs;

/// Units of firewalls.
pub(super) const UNITS: [&str; 2] = ["firewalld.service", "ufw.service"];

/// `firewalld` and `ufw`, on the hosts that have them.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("disable_firewall", "Stop the firewall");
    if !inputs.spec.system.disable_firewall {
        return task;
    }
    for (host, facts) in inputs.hosts() {
        let actions = UNITS
            .into_iter()
            .filter(|unit| facts.units.contains_key(*unit))
            .map(|unit| Box::new(Unit::stopped(unit)) as Box<dyn Action>)
            .collect();
        task = task.on(&host.name, HostWork::new(actions));
    }
    task
}
