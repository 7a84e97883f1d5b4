//! Join a worker.

use std::time::Duration;

use kk_config::Role;
use kk_engine::{HostWork, Retry, Task};

use crate::{
    base::slots,
    capabilities::control_plane,
    model::{actions::Join, inputs::Inputs},
};

/// A worker joins when its own images and binaries are present and the cluster accepts joins; all workers join at once.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task =
        Task::new("join_worker", "Join workers").timeout(Duration::from_mins(10)).retry(Retry::times(3));
    let workers = inputs.nodes().into_iter().filter(|(host, _)| !host.has_role(&Role::ControlPlane));
    for (host, _) in workers {
        if inputs.has_joined(host) {
            task = task.on(&host.name, HostWork::default().provides(slots::joined_slot(&host.name)));
            continue;
        }
        let join = Join::new(inputs, host);
        let mut work = HostWork::new(vec![Box::new(join)])
            .needs(slots::cluster_ca_slot().key())
            .needs(slots::settings_published_slot())
            .needs(slots::runtime_slot(&host.name))
            .needs(slots::kube_programs_slot(&host.name))
            .provides(slots::joined_slot(&host.name));
        work.needs.extend(control_plane::before_joins(inputs));
        if !inputs.options.skip_pull_images {
            work = work.needs(slots::node_images_slot(&host.name));
        }
        task = task.on(&host.name, work);
    }
    task
}
