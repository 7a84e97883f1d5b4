//! Defragment etcd.

use std::time::Duration;

use kk_engine::{HostWork, Task, Turn, actions::Command};

use super::{etcdctl::ask_member, start_etcd};
use crate::inputs::Inputs;

/// A member answers nobody meanwhile: one after the other, in this order.
pub(crate) fn task(inputs: &Inputs, order: &[String]) -> Task {
    let turn = Turn::one_by_one("etcd").order(order.iter().cloned());
    let mut task = Task::new("defragment", "Defragment etcd").timeout(Duration::from_mins(15)).turn(turn);
    for (host, _) in inputs.etcd_hosts() {
        let defragment = ask_member(inputs.spec, host) + " --command-timeout 600s defrag";
        let work = HostWork::new(vec![
            Box::new(Command::new("defragment the database", defragment)),
            Box::new(start_etcd::wait(inputs, host)),
        ]);
        task = task.on(&host.name, work);
    }
    task
}
