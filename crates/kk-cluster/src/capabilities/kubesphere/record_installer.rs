//! Record what was deployed.

use kk_engine::{HostWork, Task};

use crate::{
    base::{requirements::Manifest, slots},
    capabilities::manifests::record,
    model::inputs::Inputs,
};

/// Records the objects as they are in the API when all components are ready, so that the next probe detects later edits and
/// deletions.
pub(super) fn task(inputs: &Inputs, manifest: &Manifest) -> Task {
    let work = HostWork::new(vec![Box::new(record(&[manifest]))]).needs(slots::kubesphere_ready_slot());
    Task::new("record_installer", "Record what was deployed").on(&inputs.api_host.name, work)
}
