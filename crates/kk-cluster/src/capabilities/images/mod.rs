//! Pulls images in the order of need while etcd and the control plane start.

mod import;
mod import_own_images;
mod pull;
mod pull_addon_images;
mod pull_control_plane_images;
mod pull_node_images;

use kk_config::Host;
use kk_engine::{Action, Task};

use self::{import::Import, pull::Pull};
use crate::{
    base::{error::BuildError, requirements::ImageStage},
    model::{
        capability::{Capability, Stage},
        cluster::Cluster,
        inputs::Inputs,
        offline,
    },
};

/// The images that the other capabilities need.
pub(crate) struct Images;

impl Capability for Images {
    fn name(&self) -> &'static str {
        "images"
    }

    fn stage(&self) -> Stage {
        Stage::Hosts
    }

    fn skipped(&self, cluster: &Cluster) -> Option<&'static str> {
        cluster.options.skip_pull_images.then_some("--skip-pull-images is given")
    }

    /// The user's own images, which only a bundle can provide.
    fn images(&self, cluster: &Cluster, host: &Host) -> Vec<(ImageStage, String)> {
        let own =
            cluster.options.bundle.iter().filter(|_| host.is_node()).flat_map(|one| offline::own_images(one));
        let own = own.filter(|(_, image)| !cluster.images.is_published(image));
        own.map(|(name, _)| (ImageStage::Own, name)).collect()
    }

    /// Up to four pulls per host, one after the other in the background. Each pull provides a slot that other tasks need.
    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        let mut tasks = vec![
            pull_control_plane_images::task(inputs),
            pull_node_images::task(inputs),
            pull_addon_images::task(inputs),
        ];
        tasks.extend(inputs.options.bundle.as_ref().map(|_| import_own_images::task(inputs)));
        Ok(tasks)
    }
}

/// Provides the images of a stage on a host: from the bundle if there is one; otherwise, the host pulls them.
fn bring(inputs: &Inputs, host: &Host, stage: ImageStage) -> Box<dyn Action> {
    let images = inputs.requirements.images(host, stage);
    match &inputs.options.bundle {
        Some(bundle) => Box::new(Import::new(inputs, host, bundle, images)),
        None => Box::new(Pull::new(images)),
    }
}
