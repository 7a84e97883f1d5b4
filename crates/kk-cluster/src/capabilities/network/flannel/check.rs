//! Conflicts with other networks, and Kubernetes versions that do not pass a node's IPv6 address to flannel.

use crate::{base::findings::Findings, capabilities::network::check, model::inputs::Inputs};

pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    if inputs.spec.network.pods_v6.is_some() && !inputs.spec.kubernetes.version.at_least(1, 29) {
        found.error(
            inputs.api_host,
            format!(
                "Kubernetes {} does not report the IPv6 address of a node to flannel",
                inputs.spec.kubernetes.version
            ),
            "use Kubernetes 1.29 or newer, one address family, or network.plugin none with your own network",
        );
    }
    check::refuse_another(inputs, "flannel", found);
    check::refuse_foreign(inputs, "flannel", "10-flannel.conflist", found);
    check::warn_of_other_networks(inputs, "flannel", "10-flannel.conflist", found);
}
