//! Labels and taints of nodes, as the file has them.

mod set_labels;

use kk_engine::Module;

use crate::Target;

/// Sets what differs; labels and taints that somebody else gave stay.
pub(crate) fn module(target: &Target) -> Module {
    Module::new("labels", vec![set_labels::task(target)])
}
