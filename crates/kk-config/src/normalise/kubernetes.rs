//! `spec.kubernetes`.

use super::flags::{Argument, MANIFESTS};
use super::{components, proxy_args, removed, syntax};
use crate::Overrides;
use crate::findings::{At, Findings};
use crate::spec::{EncryptionAlgorithm, Kubernetes, ProxyMode};
use crate::v1alpha2::{self, ContainerManager, KubernetesType};
use crate::version::{KubeVersion, NEWEST_MINOR, OLDEST_MINOR};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

/// Default validity of kubeadm's certificates in seconds: ten years for CAs, one year for others.
const CA_VALIDITY: u64 = 87_600 * 3600;
const LEAF_VALIDITY: u64 = 8_760 * 3600;

pub(super) fn kubernetes(
    mut doc: v1alpha2::Kubernetes,
    overrides: &Overrides,
    at: At<'_>,
    out: &mut Findings<'_>,
) -> Kubernetes {
    refuse_other_distributions(&doc, at, out);
    let version = match &overrides.kubernetes_version {
        Some(given) => supported(*given, At::nowhere(), out),
        None => version(&doc.version, at.key("version"), out),
    };
    check_names(&doc, at, out);
    if doc.proxy_mode == ProxyMode::Nftables && !version.at_least(1, 31) {
        let message = format!("Kubernetes {version} has no usable nftables mode of kube-proxy");
        out.error(at.key("proxyMode"), message, "use iptables or ipvs, or Kubernetes 1.31 or newer");
    }
    components::check_kubelet(&doc.kubelet_configuration, at.key("kubeletConfiguration"), out);
    components::check_kube_proxy(&doc.kube_proxy_configuration, at.key("kubeProxyConfiguration"), out);
    proxy_args::check(&doc.kube_proxy_args, at.key("kubeProxyArgs"), out);
    removed::check(&mut doc, version, at, out);
    refuse_blanks(&doc.kubelet_args, at.key("kubeletArgs"), out);
    let certificate_seconds = check_validity(&doc, version, at, out);
    let kubelet_args = arguments(&doc.kubelet_args, at.key("kubeletArgs"), out);
    contradictions(&doc, &kubelet_args, at, out);
    Kubernetes {
        version,
        certificate_seconds,
        encryption_algorithm: encryption_algorithm(doc.encryption_algorithm, version, at, out),
        apiserver_args: arguments(&doc.apiserver_args, at.key("apiserverArgs"), out),
        controller_manager_args: arguments(
            &doc.controller_manager_args,
            at.key("controllerManagerArgs"),
            out,
        ),
        scheduler_args: arguments(&doc.scheduler_args, at.key("schedulerArgs"), out),
        kubelet_args,
        section: doc,
    }
}

/// Fields of the file that a key of `kubeletConfiguration` also sets.
const SET_TWICE: [(&str, &str); 3] =
    [("maxPods", "maxPods"), ("podPidsLimit", "podPidsLimit"), ("clusterDomain", "dnsDomain")];

/// Reports settings that contradict each other.
fn contradictions(
    doc: &v1alpha2::Kubernetes,
    kubelet_args: &BTreeMap<String, String>,
    at: At<'_>,
    out: &mut Findings<'_>,
) {
    let (own, place) = (&doc.kubelet_configuration, at.key("kubeletConfiguration"));
    for (key, field) in SET_TWICE {
        let given = match field {
            "maxPods" => json!(doc.max_pods),
            "podPidsLimit" => json!(doc.pod_pids_limit),
            _ => json!(doc.dns_domain),
        };
        if let Some(value) = own.get(key).filter(|value| at.has(field) && **value != given) {
            let message = format!("`{key}` of kubeletConfiguration is {value}, but `{field}` is {given}");
            out.error(place.key(key), message, "give one of them");
        }
    }
    for (key, flag) in [
        ("maxPods", "max-pods"),
        ("healthzPort", "healthz-port"),
        ("healthzBindAddress", "healthz-bind-address"),
    ] {
        let in_field = || (key == "maxPods" && at.has(key)).then(|| json!(doc.max_pods));
        let given = own.get(key).filter(|value| !value.is_null()).cloned().or_else(in_field);
        let (Some(given), Some(value)) = (given, kubelet_args.get(flag)) else { continue };
        let given = given.as_str().map_or_else(|| given.to_string(), str::to_owned);
        if *value != given {
            let message = format!("`{flag}={value}` of kubeletArgs contradicts `{key}: {given}`");
            let item = doc.kubelet_args.iter().position(|text| Argument::read(text).name == flag);
            let at = at.key("kubeletArgs").item(item.unwrap_or_default());
            out.error(at, message, "give one of them: the flag would win");
        }
    }
    if own.get("cgroupDriver").and_then(Value::as_str) == Some("cgroupfs") {
        let message = "containerd uses the cgroup driver of systemd: with cgroupfs the kubelet starts no pod";
        out.error(
            place.key("cgroupDriver"),
            message,
            "remove it: kk gives the kubelet and containerd the same one",
        );
    }
    let static_pods = own.get("staticPodPath").and_then(Value::as_str);
    if let Some(path) = static_pods.filter(|path| Path::new(path) != Path::new(MANIFESTS)) {
        let message = format!("the pods of the control plane are in {MANIFESTS}, not in `{path}`");
        out.error(place.key("staticPodPath"), message, "remove it");
    }
    let proxy = &doc.kube_proxy_configuration;
    if let Some(mode) = proxy.get("mode").and_then(Value::as_str)
        && at.has("proxyMode")
        && mode != doc.proxy_mode.as_str()
    {
        let message = format!(
            "`mode` of kubeProxyConfiguration is {mode}, but `proxyMode` is {}",
            doc.proxy_mode.as_str()
        );
        out.error(at.key("kubeProxyConfiguration").key("mode"), message, "give one of them");
    }
    if doc.disable_kube_proxy && !proxy.is_empty() {
        let message = "without effect: kubeProxyConfiguration beside `disableKubeProxy: true`";
        out.warning(at.name("kubeProxyConfiguration"), message, "remove one of them");
    }
    let in_flags =
        [&doc.apiserver_args, &doc.controller_manager_args, &doc.scheduler_args, &doc.kubelet_args];
    let names_gates = |text: &String| Argument::read(text).name == "feature-gates";
    if !doc.feature_gates.is_empty() && in_flags.iter().any(|args| args.iter().any(names_gates)) {
        let message = "a flag `feature-gates` replaces all of `featureGates` for its component";
        out.warning(at.name("featureGates"), message, "write all gates into featureGates");
    }
    if !doc.feature_gates.is_empty() && own.contains_key("featureGates") {
        let message = "`featureGates` of kubeletConfiguration replaces all of `featureGates` for kubelets";
        out.warning(place.name("featureGates"), message, "write all gates into spec.kubernetes.featureGates");
    }
}

fn refuse_other_distributions(doc: &v1alpha2::Kubernetes, at: At<'_>, out: &mut Findings<'_>) {
    if doc.kind != KubernetesType::Kubernetes {
        out.error(at.key("type"), "only the type `kubernetes` can be installed", "remove this line");
    }
    let refused = match doc.container_manager {
        ContainerManager::Containerd => return,
        ContainerManager::Docker => "docker",
        ContainerManager::Crio => "crio",
        ContainerManager::Isula => "isula",
    };
    let message = format!("the container runtime `{refused}` is not supported for new clusters");
    out.error(at.key("containerManager"), message, "use containerd; it runs the same images");
}

pub(super) fn version(text: &str, at: At<'_>, out: &mut Findings<'_>) -> KubeVersion {
    match text.parse::<KubeVersion>() {
        Ok(version) => supported(version, at, out),
        Err(error) => refused(error.to_string(), at, out),
    }
}

fn supported(version: KubeVersion, at: At<'_>, out: &mut Findings<'_>) -> KubeVersion {
    if version.is_supported() {
        return version;
    }
    refused(format!("Kubernetes {version} is not supported"), at, out)
}

fn refused(message: String, at: At<'_>, out: &mut Findings<'_>) -> KubeVersion {
    let example = KubeVersion::default();
    let hint = format!("give a version from 1.{OLDEST_MINOR} to 1.{NEWEST_MINOR}, such as {example}");
    out.error(at, message, hint);
    example
}

fn check_names(doc: &v1alpha2::Kubernetes, at: At<'_>, out: &mut Findings<'_>) {
    if !syntax::is_dns_name(&doc.dns_domain) {
        out.error(
            at.key("dnsDomain"),
            format!("`{}` cannot be the cluster's domain", doc.dns_domain),
            syntax::DNS_NAME,
        );
    }
    if !syntax::is_dns_name(&doc.cluster_name.to_lowercase()) {
        let message = format!("`{}` cannot be the cluster's name in kubeconfigs", doc.cluster_name);
        out.error(at.key("clusterName"), message, syntax::DNS_NAME);
    }
    for (i, name) in doc.apiserver_cert_extra_sans.iter().enumerate() {
        let dns = name.strip_prefix("*.").unwrap_or(name);
        if name.parse::<IpAddr>().is_err() && !syntax::is_dns_name(&dns.to_lowercase()) {
            let message = format!("`{name}` cannot be used in a certificate");
            out.error(at.key("apiserverCertExtraSans").item(i), message, "give an IP address or a DNS name");
        }
    }
}

/// Checks `encryptionAlgorithm`, which kubeadm supports from v1beta4 on, the format for 1.31 and newer.
fn encryption_algorithm(
    given: Option<EncryptionAlgorithm>,
    version: KubeVersion,
    at: At<'_>,
    out: &mut Findings<'_>,
) -> EncryptionAlgorithm {
    let choice = version.at_least(1, 31);
    match given {
        None if choice => EncryptionAlgorithm::EcdsaP256,
        None => EncryptionAlgorithm::Rsa2048,
        Some(algorithm) => {
            if !choice && algorithm != EncryptionAlgorithm::Rsa2048 {
                let message = format!("Kubernetes {version} can only make RSA-2048 keys");
                out.error(
                    at.key("encryptionAlgorithm"),
                    message,
                    "remove this line, or use Kubernetes 1.31 or newer",
                );
            }
            algorithm
        }
    }
}

/// Checks the validity periods, which kubeadm supports from v1beta4 on, the format for 1.31 and newer. A certificate that
/// outlives its CA is useless. Returns the validity of certificates in seconds.
fn check_validity(
    doc: &v1alpha2::Kubernetes,
    version: KubeVersion,
    at: At<'_>,
    out: &mut Findings<'_>,
) -> u64 {
    let mut period = |text: &Option<String>, key: &str, default: u64| {
        let Some(text) = text else { return Some(default) };
        if !version.at_least(1, 31) {
            let message = format!("Kubernetes {version} has fixed periods of validity");
            out.error(at.key(key), message, "remove this line, or use Kubernetes 1.31 or newer");
        }
        let seconds = syntax::go_duration(text);
        if seconds.is_none() {
            let hint = "write hours, such as 8760h for a year";
            out.error(at.key(key), format!("`{text}` is not a duration"), hint);
        }
        seconds
    };
    let ca = period(&doc.ca_certificate_validity_period, "caCertificateValidityPeriod", CA_VALIDITY);
    let leaf = period(&doc.certificate_validity_period, "certificateValidityPeriod", LEAF_VALIDITY);
    let (Some(ca), Some(leaf)) = (ca, leaf) else { return LEAF_VALIDITY };
    if leaf > ca {
        let key = "certificateValidityPeriod";
        let key = if at.has(key) { key } else { "caCertificateValidityPeriod" };
        let message =
            format!("certificates would be valid longer ({} h) than their CA ({} h)", leaf / 3600, ca / 3600);
        out.error(at.key(key), message, "give the CA the longer period");
    }
    leaf
}

/// systemd splits the kubelet's flags at blanks.
fn refuse_blanks(texts: &[String], at: At<'_>, out: &mut Findings<'_>) {
    for (i, text) in texts.iter().enumerate().filter(|(_, text)| text.contains(' ')) {
        let message = format!("`{text}` has a blank, at which systemd splits the kubelet's flags");
        out.error(at.item(i), message, "leave out the blank, or use kubeletConfiguration");
    }
}

/// Parses flags by name. KubeKey's form is without dashes; flags with dashes are accepted, too.
fn arguments(texts: &[String], at: At<'_>, out: &mut Findings<'_>) -> BTreeMap<String, String> {
    let mut arguments = BTreeMap::new();
    for (i, text) in texts.iter().enumerate() {
        let Argument { name, value: Some(value) } = Argument::read(text) else {
            out.error(at.item(i), format!("`{text}` is not a flag with its value"), "write name=value");
            continue;
        };
        let named =
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        if !named || value.contains(char::is_control) {
            out.error(
                at.item(i),
                format!("`{text}` is not a flag with its value"),
                "write name=value in one line",
            );
        } else if arguments.insert(name.clone(), value.to_owned()).is_some() {
            let hint = "give it once; several values usually go into one, with commas";
            out.error(at.item(i), format!("the flag `{name}` is given twice"), hint);
        }
    }
    arguments
}
