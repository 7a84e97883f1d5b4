//! Flags and feature gates that a version of Kubernetes no longer has. A component that is given one does not start, so an
//! upgrade would fail in the turn of its first host.

use super::components::gates;
use super::flags::{self, Argument};
use crate::findings::{At, Findings};
use crate::v1alpha2::Kubernetes;
use crate::version::KubeVersion;

/// Feature gates, one per line, with their sources.
const GATES: &str = include_str!("../known/removed_gates.txt");

/// kubeadm's own gates in any version (cmd/kubeadm/app/features of kubernetes/kubernetes, 1.27 to 1.37). No other component has
/// ever known them, and kk passes the gates of the file to the other components.
const KUBEADM: [&str; 7] = [
    "ControlPlaneKubeletLocalMode",
    "EtcdLearnerMode",
    "NodeLocalCRISocket",
    "PublicKeysECDSA",
    "RootlessControlPlane",
    "UpgradeAddonsBeforeControlPlane",
    "WaitForAllControlPlaneComponents",
];

/// A removed flag.
struct Flag {
    /// The field of the file that contains flags of this component.
    field: &'static str,
    name: &'static str,
    /// The first minor version without it.
    gone: u32,
    instead: &'static str,
}

const fn flag(field: &'static str, name: &'static str, gone: u32, instead: &'static str) -> Flag {
    Flag { field, name, gone, instead }
}

pub(super) const APISERVER: &str = "apiserverArgs";
pub(super) const CONTROLLER_MANAGER: &str = "controllerManagerArgs";
pub(super) const SCHEDULER: &str = "schedulerArgs";
pub(super) const KUBELET: &str = "kubeletArgs";

/// The number is the pull request of kubernetes/kubernetes that removed the flag. Without a number, the source is the component's
/// code (cmd/*/app) of this and the previous version, and for 1.37 the flags that the binaries of 1.36.4 list and the binaries of
/// 1.37.1 refuse.
#[rustfmt::skip]
const FLAGS: [Flag; 36] = [
    flag(APISERVER, "insecure-port", 24, "remove it: the API has one port, with TLS"),
    flag(APISERVER, "insecure-bind-address", 24, "remove it: the API has one port, with TLS"),
    flag(APISERVER, "port", 24, "remove it: the API has one port, with TLS"),
    flag(APISERVER, "address", 24, "remove it: the API has one port, with TLS"),
    flag(APISERVER, "basic-auth-file", 19, "use certificates, or OIDC"),
    flag(APISERVER, "experimental-encryption-provider-config", 14, "write encryption-provider-config"),
    flag(CONTROLLER_MANAGER, "port", 24, "remove it: there is one port, with TLS"),
    flag(CONTROLLER_MANAGER, "address", 24, "write bind-address"),
    flag(CONTROLLER_MANAGER, "experimental-cluster-signing-duration", 25, "write cluster-signing-duration"),
    flag(SCHEDULER, "port", 24, "remove it: there is one port, with TLS"),
    flag(SCHEDULER, "address", 24, "write bind-address"),
    flag(KUBELET, "container-runtime", 27, "remove it: there is one kind of runtime"),
    flag(KUBELET, "network-plugin", 24, "remove it: containerd runs the network plugin"),
    flag(KUBELET, "cni-bin-dir", 24, "remove it: containerd runs the network plugin"),
    flag(KUBELET, "cni-conf-dir", 24, "remove it: containerd runs the network plugin"),
    flag(KUBELET, "experimental-bootstrap-kubeconfig", 24, "remove it: kk gives the kubelet its kubeconfig"),
    flag(KUBELET, "allow-privileged", 15, "remove it: pods that ask for it are allowed"),
    flag(APISERVER, "cloud-provider-gce-lb-src-cidrs", 31, "give it to the cloud controller manager"),
    flag(APISERVER, "cloud-provider-gce-l7lb-src-cidrs", 31, "give it to the cloud controller manager"),
    flag(CONTROLLER_MANAGER, "cloud-provider-gce-lb-src-cidrs", 31, "give it to the cloud controller manager"),
    flag(CONTROLLER_MANAGER, "volume-host-cidr-denylist", 31, "remove it: it has no effect"),
    flag(CONTROLLER_MANAGER, "volume-host-allow-local-loopback", 31, "remove it: it has no effect"),
    flag(CONTROLLER_MANAGER, "horizontal-pod-autoscaler-upscale-delay", 31, "remove it: it has no effect"),
    flag(CONTROLLER_MANAGER, "horizontal-pod-autoscaler-downscale-delay", 31,
        "write horizontal-pod-autoscaler-downscale-stabilization"),
    flag(CONTROLLER_MANAGER, "enable-taint-manager", 27, "remove it: taints always evict"), // 115840
    flag(CONTROLLER_MANAGER, "pod-eviction-timeout", 27,
        "use default-not-ready-toleration-seconds and default-unreachable-toleration-seconds in apiserverArgs"), // 115840
    flag(KUBELET, "azure-container-registry-config", 30, "give the kubelet a credential provider of its own instead"),
    flag(KUBELET, "iptables-drop-bit", 31, "remove it: the kubelet makes no such rules"), // 122363
    flag(KUBELET, "iptables-masquerade-bit", 31,
        "remove it; kube-proxy has iptables.masqueradeBit in kubeProxyConfiguration"), // 122363
    flag(KUBELET, "keep-terminated-pod-volumes", 31, "remove it"), // 122082
    flag(APISERVER, "cloud-config", 33, "give it to the cloud controller manager"), // 130162
    flag(APISERVER, "cloud-provider", 33, "remove it: the cloud controller manager does the work"), // 130162
    flag(KUBELET, "cloud-config", 34, "give it to the cloud controller manager"),
    flag(KUBELET, "register-schedulable", 34, "remove it: taints of the file keep pods away from a node"),
    flag(KUBELET, "pod-infra-container-image", 35, "remove it: containerd has the pause image in its settings"), // 133779
    flag(CONTROLLER_MANAGER, "concurrent-service-syncs", 37, "give it to the cloud controller manager"),
];

/// Flags of cAdvisor, which the kubelet no longer has.
const CADVISOR: Flag = flag(KUBELET, "", 37, "remove it: the kubelet does not hand it to cAdvisor any more");
const CADVISOR_FLAGS: [&str; 18] = [
    "application-metrics-count-limit",
    "boot-id-file",
    "container-hints",
    "containerd",
    "containerd-namespace",
    "enable-load-reader",
    "event-storage-age-limit",
    "event-storage-event-limit",
    "global-housekeeping-interval",
    "log-cadvisor-usage",
    "machine-id-file",
    "storage-driver-buffer-duration",
    "storage-driver-db",
    "storage-driver-host",
    "storage-driver-password",
    "storage-driver-secure",
    "storage-driver-table",
    "storage-driver-user",
];

/// The cloud providers other than `external` and none were removed in Kubernetes 1.31 (kubernetes/website,
/// `DisableCloudProviders`).
const NO_CLOUDS: u32 = 31;

/// Reports flags and gates that the version no longer has. Gates of features that are always on are left out.
pub(super) fn check(doc: &mut Kubernetes, version: KubeVersion, at: At<'_>, out: &mut Findings<'_>) {
    leave_out_gates(doc, version, at, out);
    for (field, settings) in [
        ("kubeletConfiguration", &doc.kubelet_configuration),
        ("kubeProxyConfiguration", &doc.kube_proxy_configuration),
    ] {
        let at = at.key(field).key("featureGates");
        for name in gates(settings) {
            refuse_gate(name, version, at.name(name), out);
            flags::check_gate(name, version, at.name(name), out);
        }
    }
    for (field, texts) in [
        (APISERVER, &doc.apiserver_args),
        (CONTROLLER_MANAGER, &doc.controller_manager_args),
        (SCHEDULER, &doc.scheduler_args),
        (KUBELET, &doc.kubelet_args),
    ] {
        for (i, text) in texts.iter().enumerate() {
            check_flag(field, text, version, at.key(field).item(i), out);
        }
    }
}

fn leave_out_gates(doc: &mut Kubernetes, version: KubeVersion, at: At<'_>, out: &mut Findings<'_>) {
    let at = at.key("featureGates");
    doc.feature_gates.retain(|name, value| match removed_gate(name, version) {
        Some((minor, "on")) if *value => {
            let message =
                format!("Kubernetes {version} has no feature gate `{name}`: the feature is always on");
            out.warning(at.name(name), message, format!("remove it; it is left out from 1.{minor} on"));
            false
        }
        _ => {
            refuse_gate(name, version, at.name(name), out);
            flags::check_gate(name, version, at.name(name), out);
            true
        }
    });
}

fn refuse_gate(name: &str, version: KubeVersion, at: At<'_>, out: &mut Findings<'_>) {
    if KUBEADM.contains(&name) {
        let message = format!(
            "`{name}` is a feature gate of kubeadm: a component of Kubernetes that gets it does not start"
        );
        let hint = match name {
            "PublicKeysECDSA" => "remove it, and write `encryptionAlgorithm: ECDSA-P256`",
            _ => "remove it: kk itself configures kubeadm",
        };
        return out.error(at, message, hint);
    }
    let Some((minor, fate)) = removed_gate(name, version) else { return };
    let message = format!(
        "Kubernetes {version} has no feature gate `{name}` (removed in 1.{minor}): a component that gets it \
         does not start"
    );
    let hint = match fate {
        "on" => "remove it: the feature is always on",
        "off" => "remove it: the feature was removed, too",
        _ => "remove it",
    };
    out.error(at, message, hint);
}

/// Whether a gate is covered by another finding, or belongs to kubeadm.
pub(super) fn is_judged(name: &str, version: KubeVersion) -> bool {
    KUBEADM.contains(&name) || removed_gate(name, version).is_some()
}

fn check_flag(field: &str, text: &str, version: KubeVersion, at: At<'_>, out: &mut Findings<'_>) {
    let Argument { name, value } = Argument::read(text);
    let (name, value) = (name.as_str(), value.unwrap_or_default());
    let is_gone = |flag: &&Flag| {
        let is_named = flag.name == name || flag.name.is_empty() && CADVISOR_FLAGS.contains(&name);
        is_named && flag.field == field && version.at_least(1, flag.gone)
    };
    if let Some(Flag { gone, instead, .. }) = FLAGS.iter().chain(&[CADVISOR]).find(is_gone) {
        let message = format!(
            "Kubernetes {version} has no flag `--{name}` here (removed in 1.{gone}): the component does not \
             start"
        );
        return out.error(at, message, *instead);
    }
    if name == "feature-gates" {
        let gates = value.split(',').filter_map(|gate| gate.split('=').next());
        gates.for_each(|gate| refuse_gate(gate.trim(), version, at, out));
    }
    // A flag that a later version removes must not be reported as too new.
    let goes = |flag: &&Flag| (flag.field, flag.name) == (field, name);
    let cadvisor = field == KUBELET && CADVISOR_FLAGS.contains(&name);
    let is_known_to_go = cadvisor || FLAGS.iter().any(|flag| goes(&flag));
    flags::check((field, name, value), version, is_known_to_go, at, out);
    if name == "cloud-provider" && version.at_least(1, NO_CLOUDS) && !["", "external"].contains(&value) {
        let message = format!(
            "Kubernetes {version} has no cloud provider `{value}` (removed in \
                               1.{NO_CLOUDS})"
        );
        out.error(at, message, "write cloud-provider=external, and run the cloud controller manager");
    }
}

/// The minor version that removed a gate, and the state of its feature.
fn removed_gate(name: &str, version: KubeVersion) -> Option<(u32, &'static str)> {
    let gate = |line: &'static str| {
        let mut words = line.split(' ');
        let minor: u32 = words.next()?.strip_prefix("1.")?.parse().ok()?;
        (words.next()? == name).then_some((minor, words.next()?))
    };
    rows().find_map(gate).filter(|(minor, _)| version.at_least(1, *minor))
}

fn rows() -> impl Iterator<Item = &'static str> {
    GATES.lines().filter(|line| !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_gate_is_there_once_with_its_version_and_its_fate() {
        let mut names = BTreeSet::new();
        for line in rows() {
            let words: Vec<_> = line.split(' ').collect();
            let [minor, name, fate] = words[..] else { panic!("{line}") };
            let minor: u32 = minor.strip_prefix("1.").unwrap().parse().unwrap();
            assert!(names.insert(name) && ["on", "off", "unknown"].contains(&fate), "{line}");
            assert!(!KUBEADM.contains(&name), "{line}");
            let at = |minor| removed_gate(name, KubeVersion { major: 1, minor, patch: 0 });
            assert_eq!((at(minor - 1), at(minor)), (None, Some((minor, fate))), "{line}");
        }
        assert!(names.len() > 150);
    }
}
