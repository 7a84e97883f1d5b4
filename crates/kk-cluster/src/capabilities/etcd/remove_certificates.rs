//! Remove certificates of etcd from the control machine.

use kk_engine::{CONTROL, HostWork, Task};

use crate::{
    base::slots,
    model::{actions::RemoveLocal, inputs::Inputs},
};

/// Runs only when every host is done, because an unfinished host needs the certificates for the next attempt.
pub(super) fn task(inputs: &Inputs) -> Task {
    let task = Task::new("remove_certificates", "Remove certificates of etcd from the control machine");
    if !inputs.all_answered() {
        return task;
    }
    let mut work = HostWork::new(vec![Box::new(RemoveLocal(vec![inputs.directory.join("pki")]))]);
    for (host, _) in inputs.hosts() {
        work = work.needs(slots::host_restored_slot(&host.name));
    }
    task.on(CONTROL, work)
}
