//! Defragment etcd.

use std::time::Duration;

use kk_engine::{Action, HostWork, Task, Turn, actions::Command};

use super::{
    alarms,
    etcdctl::{certificate, function, local_endpoint},
    start_etcd,
};
use crate::{base::shell::script, model::inputs::Inputs};

/// Defragments one member after the other, in this order, because a member answers no requests in the meantime. The last member
/// that regains space disarms the alarm of a full database.
pub(crate) fn task(inputs: &Inputs, order: &[String]) -> Task {
    let turn = Turn::one_by_one("etcd").order(order.iter().cloned());
    let mut task = Task::new("defragment", "Defragment etcd").timeout(Duration::from_mins(30)).turn(turn);
    let full = alarms::is_full(inputs);
    for (host, _) in inputs.etcd_hosts() {
        let (endpoints, certificate) = (local_endpoint(inputs.spec), certificate(host));
        let variables = [
            ("endpoints", endpoints.as_str()),
            ("certificate", certificate.as_str()),
            ("full", if full { "yes" } else { "" }),
        ];
        let text = [&function("--command-timeout 600s"), include_str!("defragment.sh")].concat();
        let mut actions: Vec<Box<dyn Action>> = vec![
            Box::new(Command::new("defragment the database", script(&variables, &text))),
            Box::new(start_etcd::wait(inputs, host)),
        ];
        if full {
            actions.push(Box::new(alarms::disarm_when_free(inputs, host)));
        }
        task = task.on(&host.name, HostWork::new(actions));
    }
    task
}
