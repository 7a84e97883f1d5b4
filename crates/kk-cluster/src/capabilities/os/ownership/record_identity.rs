//! Record on each host which cluster it belongs to.

use kk_engine::{HostWork, Task, actions::ClusterIdentity};

use crate::{base::slots, model::inputs::Inputs};

/// Runs before any other change on a host, so that a delete with another cluster's file is refused. The CA must be saved on the
/// control machine first: a host whose record names a lost CA could not be used again.
pub(crate) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("record_identity", "Record the cluster");
    for (host, _) in inputs.hosts() {
        let identity = ClusterIdentity::new(&inputs.spec.name, inputs.pki.ca_sum());
        let work = HostWork::new(vec![Box::new(identity)]).needs(slots::etcd_certificates_slot());
        task = task.on(&host.name, work);
    }
    task
}
