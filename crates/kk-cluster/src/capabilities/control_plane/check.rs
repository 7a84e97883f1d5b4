//! Control planes and certificates of other clusters.

use kk_config::Host;

use crate::{findings::Findings, host_layout::CLUSTER_CA, inputs::Inputs};

/// A host that belongs, or belonged, to a cluster other than the one whose API is asked.
pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    let ca = |host: &Host| Some(inputs.facts(host)?.files.get(CLUSTER_CA)?.sha256.as_str());
    let ours = ca(inputs.api_host);
    for (host, _) in inputs.nodes() {
        let theirs = ca(host);
        if theirs.is_some() && theirs != ours {
            found.error(
                host,
                "it holds certificates of another cluster",
                format!(
                    "remove that cluster first (kk delete cluster with its file, or kubeadm reset), or take {} out of this file",
                    host.name
                ),
            );
        }
    }
    let runs_one = inputs
        .facts(inputs.api_host)
        .is_some_and(|facts| facts.files.contains_key("/etc/kubernetes/manifests/kube-apiserver.yaml"));
    if ours.is_none() && runs_one {
        found.error(inputs.api_host, "it runs a control plane without a CA", "remove that cluster first");
    }
}
