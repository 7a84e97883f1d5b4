//! Addons: charts and manifests of the file, installed when the cluster is there.
//!
//! Helm on a control plane does what is about releases, so that what it says of them later is true. A note on the control plane
//! says what was installed last; whether it is still there the API says. What the file does not name any more stays.

mod check;
mod install_addon;
mod secrets;
mod state;
#[cfg(test)]
mod tests;

use kk_artifact::Component;
use kk_config::{Host, Role, Spec};
use kk_engine::{ProbeSpec, Task};

use crate::{
    base::{error::BuildError, findings::Findings, requirements::ProgramStage, supply::Wanted},
    model::{
        capability::{Capability, Stage},
        inputs::Inputs,
    },
};

pub(crate) use secrets::secret_values;

/// What the file asks for.
pub(crate) struct Addons;

impl Capability for Addons {
    fn name(&self) -> &'static str {
        "addons"
    }

    fn stage(&self) -> Stage {
        Stage::AddOns
    }

    /// On all control planes: which of them does the work is known only when they have answered.
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
            check::findings(inputs, found);
        }
    }

    /// One after the other, in the order of the file.
    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        if !inputs.command.is_create() {
            return Ok(Vec::new());
        }
        Ok(inputs.addons.iter().map(|addon| install_addon::task(inputs, addon)).collect())
    }
}

/// The addons that have something to do.
pub(crate) fn needed<'a>(inputs: &'a Inputs) -> impl Iterator<Item = &'a Wanted> {
    let facts = inputs.facts(inputs.api_host);
    inputs.addons.iter().filter(move |addon| {
        facts.is_some_and(|facts| install_addon::is_needed(inputs, addon, facts))
            && inputs.command.is_create()
    })
}
