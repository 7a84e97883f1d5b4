//! calico: one daemon on each node, with address pools of its own. Its published manifest is adapted to the cluster.

mod check;
mod manifest;
mod pools;

use std::collections::BTreeMap;

use kk_artifact::Component;
use kk_config::{Calico as Settings, Host, ImageName, NetworkPlugin, Spec};
use kk_engine::{ProbeSpec, Task};

use super::{remove, restart::Agent};
use crate::{
    base::{
        error::BuildError,
        findings::Findings,
        requirements::{ImageStage, Manifest, Port, Ready, Workload},
        supply::{PublishedFile, image_names},
    },
    model::{
        capability::{Capability, Stage},
        cluster::Cluster,
        inputs::Inputs,
    },
};

/// calico with the settings of the file.
pub(super) struct Calico;

/// calico on each node. The other CNI binaries of its image are not installed.
pub(super) const AGENT: Agent = Agent {
    plugin: "calico",
    namespace: "kube-system",
    daemon_set: "calico-node",
    selector: "k8s-app=calico-node",
    writes: &["/etc/cni/net.d/10-calico.conflist", "/opt/cni/bin/calico"],
    forget: None,
    mend: None,
    broken: |_| BTreeMap::new(),
};

/// The settings of the file. `None` for another plugin.
fn settings(spec: &Spec) -> Option<&Settings> {
    if let NetworkPlugin::Calico(settings) = &spec.network.plugin { Some(settings) } else { None }
}

fn workload(path: &'static str) -> Ready {
    Ready::Workload(Workload { namespace: "kube-system", path, metrics: None })
}

impl Capability for Calico {
    fn name(&self) -> &'static str {
        "network"
    }

    fn stage(&self) -> Stage {
        Stage::AddOns
    }

    /// Any node may run each of them.
    fn images(&self, cluster: &Cluster, host: &Host) -> Vec<(ImageStage, String)> {
        let documents = cluster.published.documents(Component::Calico).filter(|_| host.is_node());
        let names = documents.map(image_names).unwrap_or_default();
        let images = names.into_iter().filter_map(|name| name.parse::<ImageName>().ok());
        images.map(|image| (ImageStage::Node, cluster.images.of_published(&image))).collect()
    }

    fn ports(&self, spec: &Spec, host: &Host) -> Vec<Port> {
        let Some(settings) = settings(spec).filter(|_| host.is_node()) else { return Vec::new() };
        let mut ports = vec![if settings.uses_vxlan() {
            Port::udp(4789, "calico vxlan")
        } else {
            Port::tcp(179, "bird")
        }];
        if settings.typha.is_some() {
            ports.push(Port::tcp(5473, "calico-typha"));
        }
        ports
    }

    /// A link for each pod, and the links of tunnels.
    fn interfaces(&self) -> &'static [&'static str] {
        &["cali*", "tunl*", "vxlan.calico", "vxlan-v6.calico", "wireguard.cali", "wg-v6.cali"]
    }

    fn asks(&self, inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
        super::check::asks(host, probe);
        AGENT.asks(probe);
        pools::asks(host, probe);
        check::asks(inputs.spec, probe);
    }

    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        check::findings(inputs, found);
        AGENT.findings(inputs, found);
        pools::findings(inputs, found);
    }

    fn published(&self, spec: &Spec) -> Option<PublishedFile> {
        let typha = settings(spec)?.typha.is_some();
        let name = if typha { "calico-typha.yaml" } else { "calico.yaml" };
        Some(PublishedFile { component: Component::Calico, name })
    }

    fn manifests(&self, cluster: &Cluster) -> Result<Vec<Manifest>, BuildError> {
        let documents = cluster.published.documents(Component::Calico);
        documents.map(|documents| manifest::manifest(cluster, documents)).into_iter().collect()
    }

    fn ready(&self, cluster: &Cluster) -> Vec<Ready> {
        let typha = settings(cluster.spec).is_some_and(|settings| settings.typha.is_some());
        let typha = typha.then(|| workload("deployment/calico-typha"));
        typha
            .into_iter()
            .chain([workload("daemonset/calico-node"), workload("deployment/calico-kube-controllers")])
            .collect()
    }

    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        Ok(AGENT.tasks(inputs))
    }

    fn remove(&self, inputs: &Inputs) -> Vec<Task> {
        vec![remove::task(inputs, "calico", &super::of_others(inputs))]
    }
}

#[cfg(test)]
mod tests;
