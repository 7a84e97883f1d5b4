//! flannel: one daemon a node, its networks from the nodes' pod ranges.

mod check;
mod manifest;
mod remove_flannel;
mod restart_flannel;

use kk_artifact::Component;
use kk_config::{FlannelBackend, Host, NetworkPlugin, Spec};
use kk_engine::{ProbeSpec, Task};

use crate::{
    BuildError,
    capability::Capability,
    findings::Findings,
    inputs::Inputs,
    requirements::{ImageStage, Manifest, Port, Ready, Workload},
};

/// flannel with the backend of the file.
pub(super) struct Flannel;

/// The backend of the file.
fn backend(spec: &Spec) -> Option<FlannelBackend> {
    if let NetworkPlugin::Flannel(backend) = spec.network.plugin { Some(backend) } else { None }
}

impl Capability for Flannel {
    fn name(&self) -> &'static str {
        "network"
    }

    fn images(&self, inputs: &Inputs, host: &Host) -> Vec<(ImageStage, String)> {
        if !host.is_node() {
            return Vec::new();
        }
        [Component::Flannel, Component::FlannelCniPlugin]
            .map(|component| inputs.images.of(component))
            .map(|image| (ImageStage::Node, image))
            .to_vec()
    }

    fn ports(&self, spec: &Spec, host: &Host) -> Vec<Port> {
        let vxlan = host.is_node() && backend(spec) == Some(FlannelBackend::Vxlan);
        if vxlan { vec![Port::udp(8472, "flannel vxlan")] } else { Vec::new() }
    }

    fn asks(&self, _inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
        super::check::asks(host, probe);
        restart_flannel::asks(probe);
    }

    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        check::findings(inputs, found);
    }

    fn manifests(&self, inputs: &Inputs) -> Result<Vec<Manifest>, BuildError> {
        Ok(vec![manifest::manifest(inputs)?])
    }

    fn ready(&self, _inputs: &Inputs) -> Vec<Ready> {
        vec![Ready::Workload(Workload {
            namespace: "kube-flannel",
            path: "daemonset/kube-flannel-ds",
            metrics: None,
        })]
    }

    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        Ok(vec![restart_flannel::prepare(inputs), restart_flannel::task(inputs)])
    }

    fn remove(&self, inputs: &Inputs) -> Vec<Task> {
        vec![remove_flannel::task(inputs)]
    }
}
