//! Pull node images.

use std::time::Duration;

use kk_config::Role;
use kk_engine::{HostWork, Retry, Task};

use super::bring;
use crate::{
    base::{requirements::ImageStage, slots},
    model::inputs::Inputs,
};

/// Pulls the images that every node runs, and without which it does not become ready.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("pull_node_images", "Pull node images")
        .timeout(Duration::from_mins(30))
        .retry(Retry::times(3))
        .background();
    for (host, _) in inputs.nodes() {
        // In the order of need: the images of a control plane are first.
        let before = if host.has_role(&Role::ControlPlane) {
            slots::control_plane_images_slot(&host.name)
        } else {
            slots::runtime_slot(&host.name)
        };
        task = task.on(
            &host.name,
            HostWork::new(vec![bring(inputs, host, ImageStage::Node)])
                .needs(before)
                .provides(slots::node_images_slot(&host.name)),
        );
    }
    task
}
