//! Let the name of the API resolve to the load balancer of kk.

use std::time::Duration;

use kk_engine::{Action, Apply, Change, Facts, HostWork, ProbeSpec, Task, actions::Block};

use super::answers;
use crate::{
    base::slots,
    capabilities::{nodes, os::write_hosts_block},
    model::inputs::Inputs,
};

/// Runs on nodes whose name of the API resolves to a control plane, when the API answers at the new address. Without a load
/// balancer of kk, /etc/hosts has the address of the file already.
pub(super) fn task(inputs: &Inputs) -> Task {
    let endpoint = inputs.endpoint();
    let names = endpoint.is_own().then(|| write_hosts_block::at(inputs, endpoint.wanted()));
    let mut task = Task::new("switch_name", "Let the name of the API resolve to its load balancer")
        .timeout(Duration::from_mins(4));
    for (host, facts) in inputs.nodes() {
        let mut actions: Vec<Box<dyn Action>> = Vec::new();
        if let Some(names) = names.as_ref().filter(|_| !nodes::uses_balancer(inputs, facts)) {
            let wait = answers(inputs)
                .hint("", "see \"crictl ps -a\", \"crictl logs\" and \"journalctl -u kubelet\" on the host");
            actions.push(Box::new(wait));
            let blocks = names.on_host(facts).into_iter();
            actions.extend(blocks.map(|block| Box::new(Always(block)) as Box<dyn Action>));
        }
        let work = HostWork::new(actions).provides(slots::api_name_slot(&host.name));
        task = task.on(&host.name, work);
    }
    task
}

/// A block that is always written: an earlier task of this run replaces the block that the probe found.
struct Always(Block);

impl Action for Always {
    fn check(&self, facts: &Facts) -> Change {
        match self.0.check(facts) {
            Change::None => Change::needed("write the name of the API into /etc/hosts again"),
            needed @ Change::Needed(_) => needed,
        }
    }

    fn apply(&self, facts: &Facts) -> Apply {
        self.0.apply(facts)
    }

    fn asks(&self, spec: &mut ProbeSpec) {
        self.0.asks(spec);
    }

    fn hint(&self, stderr: &str) -> Option<String> {
        self.0.hint(stderr)
    }
}
