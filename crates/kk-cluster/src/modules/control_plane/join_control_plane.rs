//! Join a further control plane.

use std::time::Duration;

use kk_engine::{Failure, HostWork, Task};

use super::{ignored_checks, share_certificates::shared};
use crate::{Target, join::Join, modules::slots};

/// All at once: with etcd outside of kubeadm's hands no join changes its membership.
pub(super) fn task(target: &Target) -> Task {
    let mut task = Task::new("join_control_plane", "Join control planes").timeout(Duration::from_mins(10));
    for host in target.spec.control_planes().into_iter().skip(1) {
        if target.has_joined(host) {
            task = task.on(&host.name, HostWork::default().provides(slots::joined(&host.name).key()));
            continue;
        }
        let join = Join::new(target, host, &ignored_checks(target, host)).with_certificates(|values| {
            let text =
                values.get(&shared()).ok_or_else(|| Failure::new("the cluster's CAs were not read"))?;
            Ok(text.expose().to_owned())
        });
        let mut work = HostWork::new(vec![Box::new(join)])
            .needs(slots::cluster_ca().key())
            .needs(shared().key())
            .needs(slots::runtime(&host.name).key())
            .needs(slots::kube_programs(&host.name).key())
            .provides(slots::joined(&host.name).key());
        if !target.options.skip_pull_images {
            work = work.needs(slots::control_plane_images(&host.name).key());
        }
        task = task.on(&host.name, work);
    }
    task
}
