//! Network plugins, a directory each. Outside of this directory a plugin is what [`capability`] returns.

mod flannel;
mod none;

use kk_config::{NetworkPlugin, Spec};

use crate::capability::Capability;

/// The plugin of the file.
pub(crate) fn capability(spec: &Spec) -> &'static dyn Capability {
    match spec.network.plugin {
        NetworkPlugin::Flannel(_) => &flannel::Flannel,
        NetworkPlugin::None => &none::NoPlugin,
    }
}
