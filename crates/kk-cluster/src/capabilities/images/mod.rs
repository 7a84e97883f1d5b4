//! Images, pulled in the order of need while etcd and the control plane start.

mod pull;
mod pull_addon_images;
mod pull_control_plane_images;
mod pull_node_images;

use kk_engine::Task;

use crate::{BuildError, capability::Capability, inputs::Inputs};

/// The images that the other capabilities need.
pub(crate) struct Images;

impl Capability for Images {
    fn name(&self) -> &'static str {
        "images"
    }

    fn skipped(&self, inputs: &Inputs) -> Option<&'static str> {
        inputs.options.skip_pull_images.then_some("--skip-pull-images is given")
    }

    /// Up to three pulls a host, one after the other in the background; each provides what other tasks wait for.
    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        Ok(vec![
            pull_control_plane_images::task(inputs),
            pull_node_images::task(inputs),
            pull_addon_images::task(inputs),
        ])
    }
}
