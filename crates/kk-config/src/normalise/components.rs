//! `kubeletConfiguration` and `kubeProxyConfiguration`: detects errors before a kubelet refuses its configuration.
//!
//! A kubelet that refuses its configuration does not start, so its node is lost. Unknown keys only cause a warning, because a
//! newer Kubernetes may have them.

use super::{syntax, typed::Fields};
use crate::findings::{At, Findings};
use crate::reader::did_you_mean;
use serde_json::{Map, Value};

const KUBELET: Fields = Fields::new(include_str!("../known/kubelet.txt"), "the kubelet");
const KUBE_PROXY: Fields = Fields::new(include_str!("../known/kube_proxy.txt"), "kube-proxy");

/// Signals of eviction thresholds (pkg/kubelet/eviction/api/types.go).
const SIGNALS: [&str; 9] = [
    "memory.available",
    "allocatableMemory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "containerfs.available",
    "containerfs.inodesFree",
    "pid.available",
];

/// The kubelet's defaults of `imageGCHighThresholdPercent` and `imageGCLowThresholdPercent`.
const IMAGE_GC: [(&str, i64); 2] = [("imageGCHighThresholdPercent", 85), ("imageGCLowThresholdPercent", 80)];

/// Checks the settings of the kubelet.
pub(super) fn check_kubelet(settings: &Map<String, Value>, at: At<'_>, out: &mut Findings<'_>) {
    KUBELET.check(settings, at, out);
    check_image_gc(settings, at, out);
    for name in ["evictionHard", "evictionSoft", "evictionMinimumReclaim"] {
        if let Some(thresholds) = settings.get(name).and_then(Value::as_object) {
            check_thresholds(thresholds, at.key(name), out);
        }
    }
    let grace = settings.get("evictionSoftGracePeriod");
    for signal in settings.get("evictionSoft").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
        if grace.is_none_or(|grace| grace.get(signal).is_none()) {
            let message = format!("the soft threshold of `{signal}` has no grace period");
            out.error(at.key("evictionSoft").name(signal), message, "add it to evictionSoftGracePeriod");
        }
    }
}

/// The feature gates among the settings of a component.
pub(super) fn gates(settings: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let gates = settings.get("featureGates").and_then(Value::as_object);
    gates.into_iter().flat_map(Map::keys).map(String::as_str)
}

/// Checks the settings of kube-proxy.
pub(super) fn check_kube_proxy(settings: &Map<String, Value>, at: At<'_>, out: &mut Findings<'_>) {
    KUBE_PROXY.check(settings, at, out);
}

/// The key of kube-proxy's configuration that sets the same as a flag of this name: `ipvs-strict-arp` is `ipvs.strictARP`.
pub(super) fn kube_proxy_key(flag: &str) -> Option<&'static str> {
    let letters = |text: &str| -> String { text.chars().filter(char::is_ascii_alphanumeric).collect() };
    KUBE_PROXY.paths().find(|path| letters(path).eq_ignore_ascii_case(&letters(flag)))
}

/// The kubelet refuses a high threshold that is not above the low threshold.
fn check_image_gc(settings: &Map<String, Value>, at: At<'_>, out: &mut Findings<'_>) {
    let [high, low] =
        IMAGE_GC.map(|(name, default)| settings.get(name).and_then(Value::as_i64).unwrap_or(default));
    let given = IMAGE_GC.iter().find(|(name, _)| settings.contains_key(*name));
    let Some((name, _)) = given else { return };
    if high <= low {
        let message = format!(
            "imageGCHighThresholdPercent ({high}) is not above imageGCLowThresholdPercent ({low}): kubelets do not start"
        );
        out.error(at.key(name), message, "set both, the high one above the low one");
    }
    for (name, _) in IMAGE_GC {
        let percent = settings.get(name).and_then(Value::as_i64);
        if percent.is_some_and(|percent| !(0..=100).contains(&percent)) {
            out.error(at.key(name), "this is not a percentage", "give a number from 0 to 100");
        }
    }
}

fn check_thresholds(thresholds: &Map<String, Value>, at: At<'_>, out: &mut Findings<'_>) {
    for (signal, value) in thresholds {
        if !SIGNALS.contains(&signal.as_str()) {
            let hint = did_you_mean(signal, SIGNALS.into_iter())
                .unwrap_or_else(|| format!("one of {}", SIGNALS.join(", ")));
            out.error(at.name(signal), format!("`{signal}` is not an eviction signal"), hint);
        }
        if value.as_str().is_some_and(|text| !is_threshold(text)) {
            let hint = "give a quantity or a percentage as text, such as \"500Mi\" or \"10%\"";
            out.error(at.key(signal), format!("{value} is not an eviction threshold"), hint);
        }
    }
}

/// `10%`, or a quantity above zero.
fn is_threshold(text: &str) -> bool {
    match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().is_ok_and(|percent| (0.0..=100.0).contains(&percent)),
        None => syntax::is_positive_quantity(text),
    }
}
