//! Record what was deployed.

use kk_engine::{HostWork, Task};

use crate::{
    base::{requirements::Manifest, slots},
    capabilities::manifests::record,
    model::inputs::Inputs,
};

/// As the API holds it when all is ready: what somebody edits or deletes later is seen by the next probe.
pub(super) fn task(inputs: &Inputs, manifest: &Manifest) -> Task {
    let work = HostWork::new(vec![Box::new(record(&[manifest]))]).needs(slots::kubesphere_ready_slot());
    Task::new("record_installer", "Record what was deployed").on(&inputs.api_host.name, work)
}
