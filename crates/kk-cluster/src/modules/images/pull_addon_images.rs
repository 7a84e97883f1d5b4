//! Pull CoreDNS.

use std::time::Duration;

use kk_engine::{HostWork, Retry, Task};

use super::pull::Pull;
use crate::{Target, modules::slots};

/// What may run on any node. Last: nobody waits for it before the nodes are there.
pub(super) fn task(target: &Target) -> Task {
    let mut task = Task::new("pull_addon_images", "Pull CoreDNS")
        .timeout(Duration::from_mins(30))
        .retry(Retry::times(3))
        .beside();
    for host in target.spec.nodes() {
        task = task.on(
            &host.name,
            HostWork::new(vec![Box::new(Pull::new(vec![target.images.coredns()]))])
                .needs(slots::node_images(&host.name).key())
                .provides(slots::addon_images(&host.name).key()),
        );
    }
    task
}
