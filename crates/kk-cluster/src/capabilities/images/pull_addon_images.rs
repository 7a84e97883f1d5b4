//! Pull add-on images.

use std::time::Duration;

use kk_engine::{HostWork, Retry, Task};

use super::bring;
use crate::{
    base::{requirements::ImageStage, slots},
    model::inputs::Inputs,
};

/// What may run on any node. Last: nothing waits for it before the nodes are there.
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
