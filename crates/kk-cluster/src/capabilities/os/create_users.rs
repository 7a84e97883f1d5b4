//! Create the user that etcd runs as.

use kk_engine::{HostWork, Task, actions::User};

use crate::model::inputs::Inputs;

/// A system user without a login, on the hosts of etcd. The binaries of Kubernetes need root.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("create_users", "Create users");
    for (host, _) in inputs.etcd_hosts() {
        task = task.on(&host.name, HostWork::new(vec![Box::new(User::new("etcd"))]));
    }
    task
}
