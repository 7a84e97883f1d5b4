//! `kubeProxyArgs`: kubeadm gives kube-proxy a configuration file and no flags, so each flag has a field in its place.

use super::components;
use super::flags::Argument;
use crate::findings::{At, Findings};

/// Flags whose settings are fields of the Cluster file.
const FIELDS: [(&str, &str); 4] = [
    ("proxy-mode", "spec.kubernetes.proxyMode"),
    ("masquerade-all", "spec.kubernetes.masqueradeAll"),
    ("cluster-cidr", "spec.network.kubePodsCIDR"),
    ("hostname-override", "spec.hosts[].name"),
];

/// Flags of other names than their keys in the configuration. The names of the other flags only differ in their form.
const KEYS: [(&str, &str); 7] = [
    ("v", "logging.verbosity"),
    ("kube-api-burst", "clientConnection.burst"),
    ("kube-api-content-type", "clientConnection.contentType"),
    ("kube-api-qps", "clientConnection.qps"),
    ("profiling", "enableProfiling"),
    ("conntrack-tcp-timeout-close-wait", "conntrack.tcpCloseWaitTimeout"),
    ("conntrack-tcp-timeout-established", "conntrack.tcpEstablishedTimeout"),
];

/// Warns of each flag, with the field that sets the same.
pub(super) fn check(texts: &[String], at: At<'_>, out: &mut Findings<'_>) {
    for (i, text) in texts.iter().enumerate() {
        let name = Argument::read(text).name;
        let listed = |table: &[(&str, &'static str)]| {
            table.iter().find(|(flag, _)| *flag == name).map(|(_, field)| *field)
        };
        let hint = if let Some(field) = listed(&FIELDS) {
            format!("set `{field}`")
        } else if let Some(key) = listed(&KEYS).or_else(|| components::kube_proxy_key(&name)) {
            format!("set `{key}` in spec.kubernetes.kubeProxyConfiguration")
        } else {
            "find its key in the reference of kubeProxyConfiguration".to_owned()
        };
        let message = format!("without effect: `{name}` in kubeProxyArgs, because kube-proxy gets no flags");
        out.warning(at.item(i), message, hint);
    }
}
