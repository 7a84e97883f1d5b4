//! Checks nodes for problems of their kubelets.

use kk_config::{Host, Spec};
use kk_engine::Facts;
use time::OffsetDateTime;

use super::{sandbox_flag::SANDBOX_FLAG, server_certificate};
use crate::{
    base::{certificates, findings::Findings, questions::CGROUP_DRIVER},
    model::inputs::Inputs,
};

/// The directory of the kubelet.
pub(super) const DATA: &str = "/var/lib/kubelet";

/// The percentage of free space below which the kubelet evicts pods.
const EVICTION_PERCENT: u64 = 15;

pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    for (host, facts) in inputs.nodes() {
        found.unanswered(host, &facts.answer(&CGROUP_DRIVER), "the cgroup driver of its kubelet");
        found.unanswered(host, &facts.answer(&SANDBOX_FLAG), "the flags of its kubelet");
        certificates(host, facts, found);
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
                "the kubelet is configured to accept it; support ends soon: plan to move to cgroup v2",
            );
        }
        if !facts.systemd_cgroups && inputs.systemd_cgroups() {
            found.error(
                host,
                "systemd cannot manage the cgroups of pods here, and the running cluster uses the systemd driver",
                "remove this host from the file; all nodes of a running cluster use the same driver, which \
                 cannot change",
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

/// Checks the certificates of a kubelet. It renews its client certificate itself; if that has expired, the node joins again. The
/// kubelet creates its server certificate only once.
fn certificates(host: &Host, facts: &Facts, found: &mut Findings) {
    certificates::unanswered(host, facts, found);
    let now = OffsetDateTime::now_utc();
    let client = certificates::of(facts).get("kubelet-client").and_then(|client| client.validity);
    if let Some(client) = client.filter(|client| client.is_late_for_a_kubelet(now)) {
        found.warning(
            host,
            format!("the kubelet's client certificate {}", client.words(now)),
            "the kubelet should have renewed it: see \"journalctl -u kubelet\"; after it has expired, kk \
             create cluster joins the node again",
        );
    }
    if let Some(server) = server_certificate::due(facts) {
        found.adapted(
            host,
            format!("the kubelet's server certificate {}", server.words(now)),
            "it is renewed",
        );
    }
}
