//! What the kubelet finds on a node.

use kk_config::Spec;

use super::CGROUP_DRIVER;
use crate::{findings::Findings, inputs::Inputs};

/// The kubelet's directory.
pub(super) const DATA: &str = "/var/lib/kubelet";

/// The share of a file system below which the kubelet evicts pods, in percent.
const EVICTION_PERCENT: u64 = 15;

pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    for (host, facts) in inputs.nodes() {
        found.unanswered(host, &facts.answer(&CGROUP_DRIVER), "the cgroup driver of its kubelet");
        if let Some((size, free)) = facts
            .disks
            .get(DATA)
            .filter(|(size, free)| free * 100 < size * EVICTION_PERCENT && !sets_eviction(inputs.spec))
        {
            found.warning(
                host,
                format!("{} % free on {DATA}", free * 100 / size.max(&1)),
                format!(
                    "the kubelet evicts pods below {EVICTION_PERCENT} %: make room, or set evictionHard in spec.kubernetes.kubeletConfiguration"
                ),
            );
        }
        if !facts.cgroup_v2 && inputs.spec.kubernetes.version.at_least(1, 35) {
            found.adapted(
                host,
                format!("cgroup v1 with Kubernetes {}", inputs.spec.kubernetes.version),
                "the kubelet is told to accept it; support ends soon: plan to move to cgroup v2",
            );
        }
        if !facts.systemd_cgroups && inputs.systemd_cgroups() {
            found.error(
                host,
                "systemd cannot manage the cgroups of pods here, and the running cluster uses the systemd driver",
                "leave this host out of the file; the driver of a running cluster is one for all nodes and stays",
            );
        } else if !facts.systemd_cgroups {
            found.adapted(
                host,
                "systemd cannot manage the cgroups of pods here",
                "the cgroupfs driver is used",
            );
        }
    }
}

fn sets_eviction(spec: &Spec) -> bool {
    spec.kubernetes.kubelet_configuration.contains_key("evictionHard")
}
