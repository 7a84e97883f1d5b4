//! `kk init registry`.

use std::sync::Arc;

use kk_config::OwnRegistry;
use kk_engine::{Module, Pipeline};

use crate::commands::create_cluster::has_changes;
use crate::{
    base::{error::BuildError, pki::Pki},
    capabilities::{
        programs::{self, Programs},
        registry::{self, Registry},
    },
    model::{
        capability::{Capabilities, Capability},
        inputs::Inputs,
    },
};

/// The capabilities for the host of the registry.
pub(crate) fn capabilities() -> Capabilities {
    vec![&Programs, &Registry]
}

/// If anything changes, the pipeline ends with a check that the registry answers.
pub(crate) fn pipeline(
    inputs: &Inputs,
    own: &OwnRegistry<'_>,
    pki: &Arc<Pki>,
) -> Result<Pipeline, BuildError> {
    let programs = programs::download(inputs);
    let tasks = registry::install(inputs, own, pki)?;
    let changes = programs.iter().chain(&tasks).any(|task| has_changes(inputs, task));
    let mut modules = vec![Module::new(Programs.name(), programs), Module::new(Registry.name(), tasks)];
    if changes {
        modules.push(Module::new("verify", vec![registry::verify(inputs, own, pki)]));
    }
    Ok(Pipeline::new(modules))
}
