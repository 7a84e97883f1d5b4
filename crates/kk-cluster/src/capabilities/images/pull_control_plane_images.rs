//! Pull control-plane images.

use std::time::Duration;

use kk_engine::{HostWork, Retry, Task};

use super::bring;
use crate::{
    base::{requirements::ImageStage, slots},
    model::inputs::Inputs,
};

/// Pulls the images of the static pods of a control plane. kubeadm waits only for these images.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("pull_control_plane_images", "Pull control-plane images")
        .timeout(Duration::from_mins(30))
        .retry(Retry::times(3))
        .background();
    for (host, _) in inputs.control_planes() {
        task = task.on(
            &host.name,
            HostWork::new(vec![bring(inputs, host, ImageStage::ControlPlane)])
                .needs(slots::runtime_slot(&host.name))
                .provides(slots::control_plane_images_slot(&host.name)),
        );
    }
    task
}
