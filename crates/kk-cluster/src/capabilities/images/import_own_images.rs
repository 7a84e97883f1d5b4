//! Import own images.

use std::time::Duration;

use kk_engine::{HostWork, Retry, Task};

use super::bring;
use crate::{
    base::{requirements::ImageStage, slots},
    model::inputs::Inputs,
};

/// Imports the images that the user has added to the bundle. They are last, because the cluster itself does not need them.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("import_own_images", "Import own images")
        .timeout(Duration::from_mins(30))
        .retry(Retry::times(3))
        .background();
    for (host, _) in inputs.nodes() {
        let work = HostWork::new(vec![bring(inputs, host, ImageStage::Own)])
            .provides(slots::own_images_slot(&host.name));
        task = task.on(&host.name, work.needs(slots::addon_images_slot(&host.name)));
    }
    task
}
