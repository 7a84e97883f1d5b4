//! containerd: its configuration, its way to registries, its unit.

mod configure_containerd;
mod configure_registries;
mod registries;
mod start_containerd;

use kk_engine::Module;

use crate::{BuildError, Target};

pub(crate) use registries::{basic_auth, check as check_registries};

/// Brings up the runtime on every node.
pub(crate) fn module(target: &Target) -> Result<Module, BuildError> {
    Ok(Module::new(
        "containerd",
        vec![
            configure_containerd::task(target)?,
            configure_registries::task(target)?,
            start_containerd::task(target)?,
        ],
    ))
}
