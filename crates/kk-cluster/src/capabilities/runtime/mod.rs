//! Container runtimes. Other directories use a runtime only through these functions.

mod containerd;

#[cfg(test)]
pub(crate) use containerd::DATA;
pub(crate) use containerd::{CONFIG, ROOT};

use kk_config::{Credentials, Secret, Spec};
use kk_engine::Facts;

use crate::{
    base::error::BuildError,
    model::{capability::Capability, cluster::Runtime},
};

/// The runtime that the file specifies.
pub(crate) fn capability(_spec: &Spec) -> &'static dyn Capability {
    &containerd::Containerd
}

/// The properties of the runtime that documents and scripts need.
pub(crate) fn of(_spec: &Spec) -> Runtime {
    containerd::RUNTIME
}

/// Whether the runtime runs on a host.
pub(crate) fn is_active(facts: &Facts) -> bool {
    containerd::is_active(facts)
}

/// Reads all files of the control machine that the runtime needs, so that a wrong path is reported before the first change.
pub(crate) fn check_files(spec: &Spec) -> Result<(), BuildError> {
    containerd::check_files(spec)
}

/// User name and password of a registry in the form of the runtime's files.
pub(crate) fn basic_auth(pair: Credentials<'_>) -> Secret {
    containerd::basic_auth(pair)
}
