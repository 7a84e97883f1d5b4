//! Remove etcd and its data.

use kk_engine::{HostWork, Task, actions::Command};

use crate::{inputs::Inputs, shell::script};

/// Only what kk started: another etcd on the host stays.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("remove_etcd", "Remove etcd");
    let data = &inputs.spec.etcd.data_dir;
    for (host, facts) in inputs.etcd_hosts() {
        if facts.owns("/etc/etcd.env") {
            let remove = Command::new(
                format!("stop etcd and remove {data}/member"),
                script(&[("data", data)], include_str!("remove_etcd.sh")),
            );
            task = task.on(&host.name, HostWork::new(vec![Box::new(remove)]));
        }
    }
    task
}
