//! Remove the kubeconfig from the control machine. The records of runs stay.

use kk_engine::{CONTROL, HostWork, Task};

use crate::{
    base::slots,
    model::{actions::RemoveLocal, inputs::Inputs},
};

/// Only when every host is done.
pub(super) fn task(inputs: &Inputs) -> Task {
    let task = Task::new("remove_kubeconfig", "Remove the kubeconfig from the control machine");
    if !inputs.all_answered() {
        return task;
    }
    let files = vec![inputs.directory.join("kubeconfig"), super::source_sum(&inputs.directory)];
    let mut work = HostWork::new(vec![Box::new(RemoveLocal(files))]);
    for (host, _) in inputs.hosts() {
        work = work.needs(slots::host_restored_slot(&host.name));
    }
    task.on(CONTROL, work)
}
