//! The manifest of flannel.

use kk_config::ProxyMode;
use serde_json::json;

use super::backend;
use crate::{BuildError, inputs::Inputs, requirements::Manifest};

pub(super) fn manifest(inputs: &Inputs) -> Result<Manifest, BuildError> {
    let network = &inputs.spec.network;
    let backend = backend(inputs.spec).map_or("", kk_config::FlannelBackend::as_str);
    let values = json!({
        "flannel_tag": inputs.versions.flannel,
        "flannel_image": inputs.images.flannel(),
        "cni_plugin_image": inputs.images.flannel_cni_plugin(),
        "pods": network.pods,
        "pods_v6": network.pods_v6,
        "nftables": inputs.spec.kubernetes.proxy_mode == ProxyMode::Nftables,
        "backend": backend,
        "api_address": api_address(inputs),
        "api_port": inputs.spec.control_plane_endpoint.port,
        "config_sum": format!("{} {:?} {backend}", network.pods, network.pods_v6),
    });
    let text = inputs.templates.render("network/flannel.yaml", &values)?;
    Ok(Manifest {
        name: "flannel",
        note: text.clone(),
        file: text,
        workload: "kube-flannel/kube-flannel-ds",
        command: None,
    })
}

/// How pods of the host network reach the API before Services work: an address where there is one, else the name.
fn api_address(inputs: &Inputs) -> String {
    let endpoint = &inputs.spec.control_plane_endpoint;
    endpoint.address.map_or_else(|| endpoint.domain.clone(), |address| address.to_string())
}
