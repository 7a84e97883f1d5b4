//! Join a further control plane.

use std::time::Duration;

use kk_engine::{Failure, HostWork, Task};

use super::apply_changed_settings;
use crate::{
    base::slots,
    model::{actions::Join, inputs::Inputs},
};

/// Control planes join at the same time: kubeadm does not manage etcd, so a join does not change its membership.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("join_control_plane", "Join control planes").timeout(Duration::from_mins(10));
    let others = inputs.control_planes().into_iter().filter(|(host, _)| host.name != inputs.api_host.name);
    for (host, _) in others {
        if inputs.has_joined(host) {
            task = task.on(&host.name, HostWork::default().provides(slots::joined_slot(&host.name)));
            continue;
        }
        let join = Join::new(inputs, host).with_certificates(|values| {
            values
                .get(&slots::cluster_certificates_slot())
                .ok_or_else(|| Failure::new("the cluster's CAs were not read"))
        });
        let mut work = HostWork::new(vec![Box::new(join)])
            .needs(slots::cluster_ca_slot().key())
            .needs(slots::settings_published_slot())
            .needs(slots::cluster_certificates_slot().key())
            .needs(slots::runtime_slot(&host.name))
            .needs(slots::kube_programs_slot(&host.name))
            .provides(slots::joined_slot(&host.name));
        work.needs.extend(apply_changed_settings::before_joins(inputs));
        // The API server of the new control plane connects to all members.
        for (member, _) in inputs.etcd_hosts() {
            work = work.needs(slots::etcd_healthy_slot(&member.name));
        }
        if !inputs.options.skip_pull_images {
            work = work.needs(slots::control_plane_images_slot(&host.name));
        }
        task = task.on(&host.name, work);
    }
    task
}
