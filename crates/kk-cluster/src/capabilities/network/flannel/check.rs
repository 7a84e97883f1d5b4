//! Other networks on a node, and versions that cannot tell flannel the addresses of its node.

use crate::{findings::Findings, host_layout::KUBELET_CONF, inputs::Inputs};

/// A CNI configuration that is there before flannel's makes the runtime put pods into another network.
pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    if inputs.spec.network.pods_v6.is_some() && !inputs.spec.kubernetes.version.at_least(1, 29) {
        found.error(
            inputs.api_host,
            format!("Kubernetes {} tells flannel no IPv6 address of its node", inputs.spec.kubernetes.version),
            "choose Kubernetes 1.29 or newer, one address family, or network.plugin none with a network of your own",
        );
    }
    for (host, facts) in inputs.nodes() {
        if facts.files.contains_key(KUBELET_CONF) {
            continue;
        }
        let others: Vec<&str> = facts
            .files
            .keys()
            .filter_map(|path| path.strip_prefix("/etc/cni/net.d/"))
            .filter(|name| *name != "10-flannel.conflist")
            .filter(|name| [".conf", ".conflist", ".json"].iter().any(|end| name.ends_with(end)))
            .collect();
        if !others.is_empty() {
            found.warning(
                host,
                format!("/etc/cni/net.d holds another network: {}", others.join(", ")),
                "move it away, or pods may be put into it before flannel runs",
            );
        }
    }
}
