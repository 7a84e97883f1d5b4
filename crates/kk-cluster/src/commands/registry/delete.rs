//! `kk delete registry`.

use kk_config::OwnRegistry;
use kk_engine::{Module, Pipeline};

use crate::{capabilities::registry, model::inputs::Inputs};

/// `with_data` also removes the images of the registry.
pub(crate) fn pipeline(inputs: &Inputs, own: &OwnRegistry<'_>, with_data: bool) -> Pipeline {
    Pipeline::new(vec![Module::new("registry", registry::remove(inputs, own, with_data))])
}
