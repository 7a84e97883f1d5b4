//! Pull control-plane images.

use std::time::Duration;

use kk_engine::{HostWork, Retry, Task};

use super::pull::Pull;
use crate::{inputs::Inputs, requirements::ImageStage, slots};

/// What the static pods of a control plane run. kubeadm waits for these only.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("pull_control_plane_images", "Pull control-plane images")
        .timeout(Duration::from_mins(30))
        .retry(Retry::times(3))
        .background();
    for (host, _) in inputs.control_planes() {
        let images = inputs.requirements.images(host, ImageStage::ControlPlane);
        task = task.on(
            &host.name,
            HostWork::new(vec![Box::new(Pull::new(images))])
                .needs(slots::runtime_slot(&host.name))
                .provides(slots::control_plane_images_slot(&host.name)),
        );
    }
    task
}
