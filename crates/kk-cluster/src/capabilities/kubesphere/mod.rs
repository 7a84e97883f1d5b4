//! Installs KubeSphere: ks-installer as an operator on the control planes, and the `ClusterConfiguration` that it applies.
//!
//! The operator installs, changes and removes components, and its status is authoritative. This module deploys the operator,
//! completes its configuration, and waits for it.

mod check;
mod deploy_installer;
mod look;
mod manifest;
mod progress;
mod record_installer;
mod removal;
pub(crate) mod remove_kubesphere;
mod send_image;
mod state;
mod status;
#[cfg(test)]
mod tests;
mod wait_until_ready;

use kk_config::{Host, InstallerImage, KubeSphere as Wanted, Role};
use kk_engine::{ProbeSpec, Task};

use crate::{
    base::{error::BuildError, findings::Findings, requirements::ImageStage},
    model::{
        capability::{Capability, Stage},
        cluster::Cluster,
        inputs::Inputs,
    },
};

pub use status::{ComponentStatus, KubeSphereStatus};

/// The namespace of KubeSphere.
const NAMESPACE: &str = "kubesphere-system";

/// KubeSphere as the file requests it.
pub(crate) struct KubeSphere;

impl Capability for KubeSphere {
    fn name(&self) -> &'static str {
        "kubesphere"
    }

    fn stage(&self) -> Stage {
        Stage::AddOns
    }

    fn images(&self, cluster: &Cluster, host: &Host) -> Vec<(ImageStage, String)> {
        match wanted(cluster).and_then(|wanted| wanted.image.as_ref()) {
            Some(InstallerImage::Registry(name)) if host.has_role(&Role::ControlPlane) => {
                vec![(ImageStage::Addon, name.to_string())]
            }
            _ => Vec::new(),
        }
    }

    fn asks(&self, inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
        if wanted(inputs).is_some() && host.has_role(&Role::ControlPlane) {
            state::asks(inputs, host, probe);
            send_image::asks(inputs, probe);
        }
    }

    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        if let Some(wanted) = wanted(inputs).filter(|_| inputs.command.is_create()) {
            check::findings(inputs, wanted, found);
        }
    }

    /// There are no tasks without an image, which is a finding.
    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        let Some((wanted, image)) = wanted(inputs).zip(inputs.installer.name()) else {
            return Ok(Vec::new());
        };
        if !inputs.command.is_create() {
            return Ok(vec![send_image::task(inputs)]);
        }
        let manifest = manifest::manifest(inputs, wanted, &image)?;
        Ok(vec![send_image::task(inputs), deploy_installer::task(inputs, wanted, &manifest, &image)])
    }

    /// The tasks are omitted only if the probe has found all components ready and nothing has changed since.
    fn verify(&self, inputs: &Inputs, changes: bool) -> Vec<Task> {
        let wanted = wanted(inputs).filter(|_| inputs.command.is_create());
        let Some((wanted, image)) = wanted.zip(inputs.installer.name()) else { return Vec::new() };
        let revision = inputs.installer.revision();
        if !changes && state::of(inputs).is_some_and(|state| state.is_ready(&revision)) {
            return Vec::new();
        }
        let Ok(manifest) = manifest::manifest(inputs, wanted, &image) else { return Vec::new() };
        vec![wait_until_ready::task(inputs), record_installer::task(inputs, &manifest)]
    }
}

/// The status of KubeSphere in the API, if the file enables KubeSphere.
pub(crate) fn status(inputs: &Inputs) -> Option<KubeSphereStatus> {
    wanted(inputs)?;
    let Some(state) = state::of(inputs) else {
        return Some(KubeSphereStatus { phase: "Unknown".into(), version: None, components: Vec::new() });
    };
    let phase = if state.phase().is_empty() { "Missing" } else { state.phase() };
    let version = state.version().map(str::to_owned);
    Some(KubeSphereStatus { phase: phase.to_owned(), version, components: state.components() })
}

fn wanted<'a>(cluster: &Cluster<'a>) -> Option<&'a Wanted> {
    cluster.spec.kubesphere.as_ref()
}
