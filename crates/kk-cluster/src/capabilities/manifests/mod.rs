//! Manifests of the capabilities, which are applied through the API all together after the nodes have joined.
//!
//! A kubelet that has not read the Services yet refuses a pod and tries again ten seconds later; a missing image costs as much
//! time. Therefore these conditions are met first, and then everything is applied at once.

mod apply_manifests;
mod objects;
mod overlay;
mod record_objects;

use kk_engine::{SlotKey, Task};

use crate::{
    base::{error::BuildError, slots},
    model::{
        capability::{Capability, Stage},
        inputs::Inputs,
    },
};

pub(crate) use apply_manifests::note;
pub(crate) use objects::{from_documents, from_template};
pub(crate) use overlay::{Missing, Overlay, Place};
pub(crate) use record_objects::{is_recorded, record};

/// The manifests that the other capabilities supply.
pub(crate) struct Manifests;

impl Capability for Manifests {
    fn name(&self) -> &'static str {
        "manifests"
    }

    fn stage(&self) -> Stage {
        Stage::AddOns
    }

    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        Ok(vec![apply_manifests::task(inputs), record_objects::task(inputs)])
    }
}

/// All manifests are applied.
fn applied_slot() -> SlotKey {
    slots::manifests_applied_slot()
}
