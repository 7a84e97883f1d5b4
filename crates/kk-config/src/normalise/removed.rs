//! Flags and feature gates that a version of Kubernetes does not have any more. A component that is given one does not start, so
//! that an upgrade would fail in the turn of its first host.

use super::components::kubelet_gates;
use crate::findings::{At, Findings};
use crate::v1alpha2::Kubernetes;
use crate::version::KubeVersion;

/// Feature gates, one a line: the version in which they went, the name, and what has become of the feature: `on` for all, or
/// `off`. From the table "Feature Gates (removed)" of Kubernetes' documentation (content/en/docs/reference/
/// command-line-tools-reference/feature-gates of kubernetes/website, the version after `toVersion` of the last stage),
/// for 1.36 from its changelog, and for 1.37 from the difference between k8s.io/apiserver v0.36.4 and v0.37.0. What could not be seen in
/// one of them is not here.
const GATES: &str = include_str!("../known/removed_gates.txt");

/// A flag that has gone.
struct Flag {
    /// The field of the file that gives flags to this component.
    field: &'static str,
    name: &'static str,
    /// The minor version without it.
    gone: u32,
    instead: &'static str,
}

const fn flag(field: &'static str, name: &'static str, gone: u32, instead: &'static str) -> Flag {
    Flag { field, name, gone, instead }
}

const APISERVER: &str = "apiserverArgs";
const CONTROLLER_MANAGER: &str = "controllerManagerArgs";
const SCHEDULER: &str = "schedulerArgs";
const KUBELET: &str = "kubeletArgs";

/// With the pull request of kubernetes/kubernetes that removed it.
#[rustfmt::skip]
const FLAGS: [Flag; 8] = [
    flag(CONTROLLER_MANAGER, "enable-taint-manager", 27, "remove it: taints always evict"), // 115840
    flag(CONTROLLER_MANAGER, "pod-eviction-timeout", 27,
        "use default-not-ready-toleration-seconds and default-unreachable-toleration-seconds in apiserverArgs"), // 115840
    flag(KUBELET, "iptables-drop-bit", 31, "remove it: the kubelet makes no such rules"), // 122363
    flag(KUBELET, "iptables-masquerade-bit", 31,
        "remove it; kube-proxy has iptables.masqueradeBit in kubeProxyConfiguration"), // 122363
    flag(KUBELET, "keep-terminated-pod-volumes", 31, "remove it"), // 122082
    flag(APISERVER, "cloud-config", 33, "give it to the cloud controller manager"), // 130162
    flag(APISERVER, "cloud-provider", 33, "remove it: the cloud controller manager does the work"), // 130162
    flag(KUBELET, "pod-infra-container-image", 35, "remove it: containerd has the pause image in its settings"), // 133779
];

/// The only clouds that are not `external`, none, left Kubernetes in 1.31 (kubernetes/website, `DisableCloudProviders`).
const NO_CLOUDS: u32 = 31;

/// Names what the version does not have any more. Gates of features that are always on are left out.
pub(super) fn check(doc: &mut Kubernetes, version: KubeVersion, at: At<'_>, out: &mut Findings<'_>) {
    leave_out_gates(doc, version, at, out);
    let gates = kubelet_gates(&doc.kubelet_configuration);
    let in_kubelet = at.key("kubeletConfiguration").key("featureGates");
    for name in gates {
        refuse_gate(name, version, in_kubelet.name(name), out);
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
        None => true,
        Some((minor, true)) if *value => {
            let message =
                format!("Kubernetes {version} has no feature gate `{name}`: the feature is always on");
            out.warning(at.name(name), message, format!("remove it; it is left out from 1.{minor} on"));
            false
        }
        Some(_) => {
            refuse_gate(name, version, at.name(name), out);
            true
        }
    });
}

fn refuse_gate(name: &str, version: KubeVersion, at: At<'_>, out: &mut Findings<'_>) {
    let Some((minor, always_on)) = removed_gate(name, version) else { return };
    let message = format!(
        "Kubernetes {version} has no feature gate `{name}` (gone in 1.{minor}): a component that gets it does not start"
    );
    let hint = if always_on {
        "remove it: the feature is always on"
    } else {
        "remove it: the feature has gone, too"
    };
    out.error(at, message, hint);
}

fn check_flag(field: &str, text: &str, version: KubeVersion, at: At<'_>, out: &mut Findings<'_>) {
    let (name, value) =
        text.trim_start_matches('-').split_once('=').unwrap_or((text.trim_start_matches('-'), ""));
    if name == "feature-gates" {
        let gates = value.split(',').filter_map(|gate| gate.split('=').next());
        gates.for_each(|gate| refuse_gate(gate.trim(), version, at, out));
    }
    let is_gone = |flag: &&Flag| flag.field == field && flag.name == name && version.at_least(1, flag.gone);
    if let Some(Flag { gone, instead, .. }) = FLAGS.iter().find(is_gone) {
        let message = format!(
            "Kubernetes {version} has no flag `--{name}` here (gone in 1.{gone}): the component does not start"
        );
        out.error(at, message, *instead);
    } else if name == "cloud-provider" && version.at_least(1, NO_CLOUDS) && !["", "external"].contains(&value)
    {
        let message = format!("Kubernetes {version} has no cloud provider `{value}` (gone in 1.{NO_CLOUDS})");
        out.error(at, message, "write cloud-provider=external, and run the cloud controller manager");
    }
}

/// The minor version in which a gate went, and whether its feature is always on since then.
fn removed_gate(name: &str, version: KubeVersion) -> Option<(u32, bool)> {
    let gate = |line: &str| {
        let mut words = line.split(' ');
        let minor: u32 = words.next()?.strip_prefix("1.")?.parse().ok()?;
        (words.next()? == name).then_some((minor, words.next()? == "on"))
    };
    GATES.lines().find_map(gate).filter(|(minor, _)| version.at_least(1, *minor))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_gate_is_there_once_with_its_version_and_its_fate() {
        let mut names = BTreeSet::new();
        for line in GATES.lines() {
            let words: Vec<_> = line.split(' ').collect();
            let [minor, name, fate] = words[..] else { panic!("{line}") };
            let minor: u32 = minor.strip_prefix("1.").unwrap().parse().unwrap();
            assert!(names.insert(name) && ["on", "off"].contains(&fate), "{line}");
            let at = |minor| removed_gate(name, KubeVersion { major: 1, minor, patch: 0 });
            assert_eq!((at(minor - 1), at(minor)), (None, Some((minor, fate == "on"))), "{line}");
        }
        assert!(names.len() > 100);
    }
}
