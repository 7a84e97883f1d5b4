//! Join a worker.

use std::time::Duration;

use kk_config::Role;
use kk_engine::{HostWork, Retry, Task};

use crate::{
    Target,
    join::Join,
    modules::{control_plane, slots},
};

/// A worker joins when its own images and programs are there and the cluster is open; all at once.
pub(super) fn task(target: &Target) -> Task {
    let mut task =
        Task::new("join_worker", "Join workers").timeout(Duration::from_mins(10)).retry(Retry::times(3));
    for host in target.spec.nodes().into_iter().filter(|host| !host.has_role(&Role::ControlPlane)) {
        if target.has_joined(host) {
            task = task.on(&host.name, HostWork::default().provides(slots::joined(&host.name).key()));
            continue;
        }
        let join = Join::new(target, host, &control_plane::ignored_checks(target, host));
        let mut work = HostWork::new(vec![Box::new(join)])
            .needs(slots::cluster_ca().key())
            .needs(slots::runtime(&host.name).key())
            .needs(slots::kube_programs(&host.name).key())
            .provides(slots::joined(&host.name).key());
        if !target.options.skip_pull_images {
            work = work.needs(slots::node_images(&host.name).key());
        }
        task = task.on(&host.name, work);
    }
    task
}
