//! kube-proxy: Services on every node, by kubeadm's own add-on.

mod remove_kube_proxy;

use kk_config::{Host, ProxyMode, Spec};
use kk_engine::Task;

use crate::{
    BuildError,
    capability::Capability,
    findings::Findings,
    inputs::Inputs,
    kubeadm,
    requirements::{ImageStage, Manifest, Port, Ready},
};

/// kube-proxy, unless the file turns it off.
pub(crate) struct KubeProxy;

impl Capability for KubeProxy {
    fn name(&self) -> &'static str {
        "kube-proxy"
    }

    fn skipped(&self, inputs: &Inputs) -> Option<&'static str> {
        inputs.spec.kubernetes.disable_kube_proxy.then_some("spec.kubernetes.disableKubeProxy is set")
    }

    fn images(&self, inputs: &Inputs, host: &Host) -> Vec<(ImageStage, String)> {
        if !host.is_node() || self.skipped(inputs).is_some() {
            return Vec::new();
        }
        vec![(ImageStage::Node, inputs.images.kube_proxy())]
    }

    fn ports(&self, _spec: &Spec, host: &Host) -> Vec<Port> {
        if host.is_node() { vec![Port::tcp(10256, "kube-proxy")] } else { Vec::new() }
    }

    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        if inputs.spec.kubernetes.proxy_mode != ProxyMode::Ipvs {
            return;
        }
        for (host, facts) in inputs.nodes() {
            let has = |name: &str| facts.features.contains(name) || facts.modules.contains(name);
            if !has("ipvs") && !has("ip_vs") {
                found.error(
                    host,
                    "the kernel has no IPVS",
                    "set spec.kubernetes.proxyMode to iptables or nftables",
                );
            }
        }
    }

    fn manifests(&self, inputs: &Inputs) -> Result<Vec<Manifest>, BuildError> {
        if self.skipped(inputs).is_some() {
            return Ok(Vec::new());
        }
        Ok(vec![Manifest {
            name: "kube-proxy",
            note: kubeadm::cluster_documents(inputs),
            file: kubeadm::phase_documents(inputs, inputs.api_host),
            workload: "kube-system/kube-proxy",
            command: Some("kubeadm init phase addon kube-proxy --config kube-proxy.yaml"),
        }])
    }

    fn ready(&self, inputs: &Inputs) -> Vec<Ready> {
        if self.skipped(inputs).is_some() {
            return Vec::new();
        }
        vec![Ready::Workload { namespace: "kube-system", workload: "daemonset/kube-proxy" }]
    }

    fn remove(&self, inputs: &Inputs) -> Vec<Task> {
        vec![remove_kube_proxy::task(inputs)]
    }
}
