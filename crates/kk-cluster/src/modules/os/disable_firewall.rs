//! Stop firewalls, when the file asks for it.

use kk_engine::{Action, HostWork, Task, actions::Unit};

use crate::Target;

/// `firewalld` and `ufw`, on the hosts that have them.
pub(super) fn task(target: &Target) -> Task {
    let mut task = Task::new("disable_firewall", "Stop the firewall");
    if !target.spec.system.disable_firewall {
        return task;
    }
    for host in &target.spec.hosts {
        let actions = ["firewalld.service", "ufw.service"]
            .into_iter()
            .filter(|unit| target.facts(host).units.contains_key(*unit))
            .map(|unit| Box::new(Unit::stopped(unit)) as Box<dyn Action>)
            .collect();
        task = task.on(&host.name, HostWork::new(actions));
    }
    task
}
