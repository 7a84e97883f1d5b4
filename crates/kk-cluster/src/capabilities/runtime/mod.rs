//! Container runtimes. Outside of this directory a runtime is what these functions return.

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

/// The runtime of the file.
pub(crate) fn capability(_spec: &Spec) -> &'static dyn Capability {
    &containerd::Containerd
}

/// What documents and scripts need to know about it.
pub(crate) fn of(_spec: &Spec) -> Runtime {
    containerd::RUNTIME
}

/// Whether it runs on a host.
pub(crate) fn is_active(facts: &Facts) -> bool {
    containerd::is_active(facts)
}

/// Reads every file of the control machine that it needs, so that a wrong path is known before the first change.
pub(crate) fn check_files(spec: &Spec) -> Result<(), BuildError> {
    containerd::check_files(spec)
}

/// User name and password of a registry as the runtime's files hold them.
pub(crate) fn basic_auth(pair: Credentials<'_>) -> Secret {
    containerd::basic_auth(pair)
}
