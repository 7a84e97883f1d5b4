//! Network plugins, a directory each. Outside of this directory a plugin is what [`capability`] returns.

mod flannel;
mod none;

use kk_config::{NetworkPlugin, Spec};
use kk_engine::ProbeSpec;

use crate::{capability::Capability, findings::Findings, host_layout::KUBELET_CONF, inputs::Inputs};

/// Where the runtime looks for the networks of pods.
const CONFIGURATIONS: &str = "/etc/cni/net.d";

/// The plugin of the file.
pub(crate) fn capability(spec: &Spec) -> &'static dyn Capability {
    match spec.network.plugin {
        NetworkPlugin::Flannel(_) => &flannel::Flannel,
        NetworkPlugin::None => &none::NoPlugin,
    }
}

/// Asks for what [`warn_of_other_networks`] reads.
fn ask_for_configurations(probe: &mut ProbeSpec) {
    probe.files.insert(format!("{CONFIGURATIONS}/*"));
}

/// A CNI configuration that is there before the one of the plugin makes the runtime put pods into another network.
fn warn_of_other_networks(inputs: &Inputs, plugin: &str, own: &str, found: &mut Findings) {
    for (host, facts) in inputs.nodes() {
        if facts.files.contains_key(KUBELET_CONF) {
            continue;
        }
        let others: Vec<&str> = facts
            .files
            .keys()
            .filter_map(|path| path.strip_prefix(CONFIGURATIONS)?.strip_prefix('/'))
            .filter(|name| *name != own)
            .filter(|name| [".conf", ".conflist", ".json"].iter().any(|end| name.ends_with(end)))
            .collect();
        if !others.is_empty() {
            found.warning(
                host,
                format!("{CONFIGURATIONS} holds another network: {}", others.join(", ")),
                format!("move it away, or pods may be put into it before {plugin} runs"),
            );
        }
    }
}

/// How pods of the host network reach the API before Services work: an address where there is one, else the name.
fn api_address(inputs: &Inputs) -> String {
    let endpoint = &inputs.spec.control_plane_endpoint;
    endpoint.address.map_or_else(|| endpoint.domain.clone(), |address| address.to_string())
}
