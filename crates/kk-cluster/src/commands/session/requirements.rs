//! What capabilities together need.

use crate::{
    base::{error::BuildError, requirements::Requirements},
    capabilities::registry,
    model::{
        capability::{Capabilities, taking_part},
        inputs::Inputs,
    },
};

/// What all of them together need, host by host.
pub(crate) fn requirements(all: &Capabilities, inputs: &Inputs) -> Result<Requirements, BuildError> {
    let all = taking_part(all, inputs);
    let mut needed = Requirements::default();
    for host in &inputs.spec.hosts {
        let programs = all.iter().flat_map(|capability| capability.programs(inputs.spec, host)).collect();
        needed.programs.insert(host.name.clone(), programs);
        let images = all.iter().flat_map(|capability| capability.images(inputs, host)).collect();
        needed.images.insert(host.name.clone(), images);
        let ports = all.iter().flat_map(|capability| capability.ports(inputs.spec, host)).collect();
        needed.ports.insert(host.name.clone(), ports);
    }
    for capability in &all {
        needed.interfaces.extend(capability.interfaces());
        needed.directories.extend(capability.directories(inputs.spec));
        needed.manifests.extend(capability.manifests(inputs)?);
        needed.ready.extend(capability.ready(inputs));
        needed.stays.extend(capability.stays(inputs));
    }
    needed.others = registry::recorded(inputs.spec);
    Ok(needed)
}
