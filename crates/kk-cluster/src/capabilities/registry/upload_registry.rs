//! Upload the registry.

use std::time::Duration;

use kk_artifact::Component;
use kk_config::OwnRegistry;
use kk_engine::{HostWork, Task};

use crate::{base::slots, capabilities::programs::UploadPrograms, model::inputs::Inputs};

pub(super) fn task(inputs: &Inputs, own: &OwnRegistry<'_>) -> Task {
    let upload = UploadPrograms::new(inputs, own.host, &[Component::Registry]);
    let fetched = slots::fetched_slot(Component::Registry, inputs.arch(own.host));
    let work = HostWork::new(vec![Box::new(upload)]).needs(fetched.key());
    Task::new("upload_registry", "Upload the registry")
        .timeout(Duration::from_hours(1))
        .on(&own.host.name, work)
}
