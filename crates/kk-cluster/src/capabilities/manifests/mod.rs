//! What the capabilities apply through the API, all together once the nodes are there.
//!
//! A pod that reaches a kubelet before that has read the Services is refused and tried again ten seconds later, and an
//! image that is missing costs as much. So the conditions are made true first, then everything is applied at once.

mod apply_manifests;
mod objects;
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
pub(crate) use objects::from_template;
pub(crate) use record_objects::{is_recorded, record};

/// The manifests that the other capabilities give.
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
