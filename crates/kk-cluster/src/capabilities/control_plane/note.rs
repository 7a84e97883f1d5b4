//! Manages the note of the settings that were last applied to a control plane.

use kk_config::Host;
use kk_engine::{Action as _, actions::File};

use crate::{
    base::{host_layout::NOTES, questions::etcd_servers},
    model::{inputs::Inputs, kubeadm},
};

/// The path of the note.
pub(super) fn path() -> String {
    format!("{NOTES}/cluster.yaml")
}

/// The note that the settings of the file require.
pub(super) fn note(inputs: &Inputs, host: &Host) -> File {
    File::text(path(), kubeadm::control_plane_documents(inputs, host))
}

/// Whether the file lists other members of etcd than were last applied to this control plane, and nothing else has changed.
pub(super) fn only_members_are_changed(inputs: &Inputs, host: &Host) -> bool {
    is_changed(inputs, host) && !more_is_changed(inputs, host)
}

/// Whether the file requires settings other than those that were last applied to this control plane, apart from changed members
/// of etcd.
pub(super) fn more_is_changed(inputs: &Inputs, host: &Host) -> bool {
    let Some(facts) = inputs.facts(host) else { return false };
    let Some(members) = etcd_servers(facts) else { return note(inputs, host).check(facts).is_needed() };
    let members = members.into_iter().collect();
    let text = kubeadm::control_plane_documents_with(inputs, host, members);
    File::text(path(), text).check(facts).is_needed()
}

/// Whether the file requires settings other than those that were last applied to this control plane.
pub(super) fn is_changed(inputs: &Inputs, host: &Host) -> bool {
    inputs.facts(host).is_some_and(|facts| note(inputs, host).check(facts).is_needed())
}
