//! Combined requirements of the capabilities.

use crate::{
    base::{error::BuildError, requirements::Requirements},
    capabilities::registry,
    model::{
        capability::{Capabilities, taking_part},
        cluster::Cluster,
    },
};

/// The requirements of all capabilities, host by host.
pub(crate) fn requirements(all: &Capabilities, cluster: &Cluster) -> Result<Requirements, BuildError> {
    let all = taking_part(all, cluster);
    let mut needed = Requirements::default();
    for host in &cluster.spec.hosts {
        let programs = all.iter().flat_map(|capability| capability.programs(cluster.spec, host)).collect();
        needed.programs.insert(host.name.clone(), programs);
        let images = all.iter().flat_map(|capability| capability.images(cluster, host)).collect();
        needed.images.insert(host.name.clone(), images);
        let ports = all.iter().flat_map(|capability| capability.ports(cluster.spec, host)).collect();
        needed.ports.insert(host.name.clone(), ports);
    }
    for capability in &all {
        needed.interfaces.extend(capability.interfaces());
        needed.directories.extend(capability.directories(cluster.spec));
        needed.manifests.extend(capability.manifests(cluster)?);
        needed.ready.extend(capability.ready(cluster));
        needed.stays.extend(capability.stays(cluster));
    }
    needed.others = registry::recorded(cluster.spec);
    Ok(needed)
}
