//! flannel: one daemon a node, its networks from the nodes' pod ranges.

mod check;
mod manifest;

use kk_artifact::Component;
use kk_config::{Host, NetworkPlugin, Spec, v1alpha2::FlannelBackend};
use kk_engine::{ProbeSpec, Task};

use super::{remove, restart::Agent};
use crate::{
    BuildError,
    capability::Capability,
    findings::Findings,
    inputs::Inputs,
    requirements::{ImageStage, Manifest, Port, Ready, Workload},
};

/// flannel with the backend of the file.
pub(super) struct Flannel;

/// flannel on each node. After a boot it writes the node's range of pods below /run by itself.
pub(super) const AGENT: Agent = Agent {
    plugin: "flannel",
    namespace: "kube-flannel",
    daemon_set: "kube-flannel-ds",
    selector: "app=flannel",
    writes: &["/etc/cni/net.d/10-flannel.conflist", "/opt/cni/bin/flannel"],
    forget: "rm -f /run/flannel/subnet.env\n! ip link show cni0 >/dev/null 2>&1 || ip link delete cni0\n",
};

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

    /// The bridge of pods, flannel's own links, and one for each pod.
    fn interfaces(&self) -> &'static [&'static str] {
        &["cni0", "flannel*", "veth*"]
    }

    fn asks(&self, _inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
        super::check::asks(host, probe);
        AGENT.asks(probe);
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
        Ok(AGENT.tasks(inputs))
    }

    fn remove(&self, inputs: &Inputs) -> Vec<Task> {
        // Only host-gw makes routes of its own; the others' go with their links. A file of another plugin does not say
        // which backend there was.
        let routes = match backend(inputs.spec) {
            Some(FlannelBackend::HostGw) | None => inputs.spec.network.pods.to_string(),
            Some(_) => String::new(),
        };
        vec![remove::task(inputs, "flannel", &[("routes", &routes)], include_str!("remove_flannel.sh"))]
    }
}
