//! No network plugin: the user installs one.

use crate::{capability::Capability, inputs::Inputs, requirements::Ready};

/// Nothing is installed, so nothing can become ready.
pub(super) struct NoPlugin;

impl Capability for NoPlugin {
    fn name(&self) -> &'static str {
        "network"
    }

    fn ready(&self, _inputs: &Inputs) -> Vec<Ready> {
        vec![Ready::Never("without a network plugin nodes do not become ready; install yours now")]
    }
}
