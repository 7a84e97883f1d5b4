//! Pull add-on images.

use std::time::Duration;

use kk_engine::{HostWork, Retry, Task};

use super::bring;
use crate::{
    base::{requirements::ImageStage, slots},
    model::inputs::Inputs,
};

/// Pulls images that may run on any node. They are last, because nothing needs them before the nodes have joined.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("pull_addon_images", "Pull add-on images")
        .timeout(Duration::from_mins(30))
        .retry(Retry::times(3))
        .background();
    for (host, _) in inputs.nodes() {
        task = task.on(
            &host.name,
            HostWork::new(vec![bring(inputs, host, ImageStage::Addon)])
                .needs(slots::node_images_slot(&host.name))
                .provides(slots::addon_images_slot(&host.name)),
        );
    }
    task
}
