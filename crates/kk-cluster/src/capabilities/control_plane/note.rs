//! The note of the settings that were last applied to a control plane.

use kk_config::Host;
use kk_engine::{Action as _, actions::File};

use crate::{host_layout::NOTES, inputs::Inputs, kubeadm};

/// Where it lies.
pub(super) fn path() -> String {
    format!("{NOTES}/cluster.yaml")
}

/// The note as the file wants it.
pub(super) fn note(inputs: &Inputs, host: &Host) -> File {
    File::text(path(), kubeadm::control_plane_documents(inputs, host))
}

/// Whether the file asks for other settings than those last applied to this control plane.
pub(super) fn is_changed(inputs: &Inputs, host: &Host) -> bool {
    inputs.facts(host).is_some_and(|facts| note(inputs, host).check(facts).is_needed())
}
