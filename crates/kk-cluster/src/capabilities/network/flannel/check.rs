//! Other networks on a node.

use crate::{findings::Findings, host_layout::KUBELET_CONF, inputs::Inputs};

/// A CNI configuration that is there before flannel's makes the runtime put pods into another network.
pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
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
