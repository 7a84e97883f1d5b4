//! Create the user that etcd runs as.

use kk_engine::{HostWork, Task, actions::User};

use crate::Target;

/// A system user without a login on the hosts of etcd. Kubernetes' own programs need root.
pub(super) fn task(target: &Target) -> Task {
    let mut task = Task::new("create_users", "Create users");
    for host in target.spec.etcd_hosts() {
        task = task.on(&host.name, HostWork::new(vec![Box::new(User::new("etcd"))]));
    }
    task
}
