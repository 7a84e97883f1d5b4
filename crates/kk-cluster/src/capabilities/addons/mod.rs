//! Installs addons, which are charts and manifests of the file: some before nodes are Ready, the others once the cluster works.
//!
//! Helm on a control plane manages the releases, so that its later answers about them are true. A note on the control plane
//! records what was installed last; the API shows whether it is still there. Addons that the file no longer lists stay installed.

mod check;
mod install_addon;
mod of_network;
mod secrets;
mod state;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use state::STATE;

use kk_artifact::Component;
use kk_config::{AddonPhase, Host, Role, Spec};
use kk_engine::{ProbeSpec, Task};

use crate::{
    base::{error::BuildError, findings::Findings, requirements::ProgramStage, supply::Wanted},
    model::{
        capability::{Capability, Stage},
        inputs::Inputs,
    },
};

pub(crate) use of_network::{NetworkAddons, has_any as has_network_addons};
pub(crate) use secrets::{secret_values, secrets_in};
pub(crate) use state::installed_versions;

/// The addons of the phase `cluster`.
pub(crate) struct Addons;

impl Capability for Addons {
    fn name(&self) -> &'static str {
        "addons"
    }

    fn stage(&self) -> Stage {
        Stage::AddOns
    }

    /// On all control planes, because the control plane that installs the addons is known only after the hosts have answered.
    fn programs(&self, spec: &Spec, host: &Host) -> Vec<(ProgramStage, Component)> {
        let has_chart = spec.addons.iter().any(|addon| addon.chart.is_some());
        if has_chart && host.has_role(&Role::ControlPlane) {
            vec![(ProgramStage::Tools, Component::Helm)]
        } else {
            Vec::new()
        }
    }

    fn asks(&self, inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
        if host.has_role(&Role::ControlPlane) {
            state::asks(inputs, host, probe);
        }
    }

    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        if inputs.command.is_create() {
            check::findings(inputs, AddonPhase::Cluster, found);
        }
    }

    /// Installs addons one after the other, in the order of the file.
    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        if !inputs.command.is_create() {
            return Ok(Vec::new());
        }
        let addons = inputs.addons.iter().filter(|addon| addon.addon.phase == AddonPhase::Cluster);
        Ok(addons.map(|addon| install_addon::task(inputs, addon)).collect())
    }
}

/// The addons that this command installs.
pub(crate) fn needed<'a>(inputs: &'a Inputs) -> impl Iterator<Item = &'a Wanted> {
    let facts = inputs.facts(inputs.api_host);
    inputs.addons.iter().filter(move |addon| {
        facts.is_some_and(|facts| install_addon::is_needed(inputs, addon, facts))
            && inputs.command.is_create()
    })
}
