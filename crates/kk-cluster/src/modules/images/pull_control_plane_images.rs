//! Pull control-plane images.

use std::time::Duration;

use kk_engine::{HostWork, Retry, Task};

use super::pull::Pull;
use crate::{Target, modules::slots};

/// What the static pods of a control plane run. kubeadm waits for these only.
pub(super) fn task(target: &Target) -> Task {
    let mut task = Task::new("pull_control_plane_images", "Pull control-plane images")
        .timeout(Duration::from_mins(30))
        .retry(Retry::times(3))
        .beside();
    for host in target.spec.control_planes() {
        task = task.on(
            &host.name,
            HostWork::new(vec![Box::new(Pull::new(images(target)))])
                .needs(slots::runtime(&host.name).key())
                .provides(slots::control_plane_images(&host.name).key()),
        );
    }
    task
}

fn images(target: &Target) -> Vec<String> {
    let mut images = target.images.control_plane();
    images.push(target.images.pause());
    images
}
