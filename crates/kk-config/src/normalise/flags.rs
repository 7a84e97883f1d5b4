//! Checks flags of components: unknown flags, flags that kk sets itself, and files that a pod cannot see.

use super::removed::{APISERVER, CONTROLLER_MANAGER, KUBELET, SCHEDULER};
use crate::findings::{At, Findings};
use crate::reader::did_you_mean;
use crate::version::KubeVersion;
use std::collections::BTreeMap;
use std::path::Path;

/// Flags by field, with their sources.
const FLAGS: &str = include_str!("../known/flags.txt");
/// Feature gates, with their sources.
const GATES: &str = include_str!("../known/gates.txt");
/// Admission plugins, with their sources.
const PLUGINS: &str = include_str!("../known/admission_plugins.txt");

/// Gates that represent many others (k8s.io/component-base, featuregate).
const GROUPS_OF_GATES: [&str; 2] = ["AllAlpha", "AllBeta"];

/// A flag as written in the file, with or without leading dashes.
pub(super) struct Argument<'a> {
    /// The name as components read it, with `-` in place of `_`.
    pub(super) name: String,
    pub(super) value: Option<&'a str>,
}

impl<'a> Argument<'a> {
    pub(super) fn read(text: &'a str) -> Self {
        let text = text.trim_start_matches('-');
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        Self { name: name.replace('_', "-"), value }
    }
}

/// The directory into which kubeadm writes the pods of the control plane.
pub(super) const MANIFESTS: &str = "/etc/kubernetes/manifests";

/// A flag that kk or kubeadm sets for the component.
struct Own {
    field: &'static str,
    name: &'static str,
    instead: &'static str,
}

const fn own(field: &'static str, name: &'static str, instead: &'static str) -> Own {
    Own { field, name, instead }
}

const LEAVE_OUT: &str = "remove it: kk gives it its value";
const ETCD: &str = "remove it: kk gives it the members in roleGroups.etcd and their certificates";
const SERVICES: &str = "set spec.network.kubeServiceCIDR";
const CERTIFICATES: &str = "remove it: kk makes and renews the certificates at their usual places";
const NODE_NAME: &str = "set `name` of the host";
const PROBES: &str = "remove it: kk and kubeadm ask the component at its usual port";

/// With another value, kk would look for the component's files or ports in the wrong place, or the flag would override a field of
/// the file. Flags of CAs and `advertise-address` are not in this list, because kk supports them.
#[rustfmt::skip]
const OWN: [Own; 52] = [
    own(APISERVER, "etcd-servers", ETCD),
    own(APISERVER, "etcd-cafile", ETCD),
    own(APISERVER, "etcd-certfile", ETCD),
    own(APISERVER, "etcd-keyfile", ETCD),
    own(APISERVER, "service-cluster-ip-range", SERVICES),
    own(APISERVER, "secure-port", "remove it: API servers listen on 6443; a load balancer may have another port"),
    own(APISERVER, "tls-cert-file", CERTIFICATES),
    own(APISERVER, "tls-private-key-file", CERTIFICATES),
    own(APISERVER, "cert-dir", CERTIFICATES),
    own(APISERVER, "kubelet-client-certificate", CERTIFICATES),
    own(APISERVER, "kubelet-client-key", CERTIFICATES),
    own(APISERVER, "proxy-client-cert-file", CERTIFICATES),
    own(APISERVER, "proxy-client-key-file", CERTIFICATES),
    own(APISERVER, "service-account-key-file", CERTIFICATES),
    own(APISERVER, "service-account-signing-key-file", CERTIFICATES),
    own(APISERVER, "enable-bootstrap-token-auth", LEAVE_OUT),
    own(CONTROLLER_MANAGER, "cluster-cidr", "set spec.network.kubePodsCIDR"),
    own(CONTROLLER_MANAGER, "service-cluster-ip-range", SERVICES),
    own(CONTROLLER_MANAGER, "node-cidr-mask-size", "set spec.kubernetes.nodeCidrMaskSize"),
    own(CONTROLLER_MANAGER, "node-cidr-mask-size-ipv4", "set spec.kubernetes.nodeCidrMaskSize"),
    own(CONTROLLER_MANAGER, "node-cidr-mask-size-ipv6", "set spec.kubernetes.nodeCidrMaskSizeIPv6"),
    own(CONTROLLER_MANAGER, "cluster-name", "set spec.kubernetes.clusterName"),
    own(CONTROLLER_MANAGER, "kubeconfig", LEAVE_OUT),
    own(CONTROLLER_MANAGER, "authentication-kubeconfig", LEAVE_OUT),
    own(CONTROLLER_MANAGER, "authorization-kubeconfig", LEAVE_OUT),
    own(CONTROLLER_MANAGER, "master", LEAVE_OUT),
    own(CONTROLLER_MANAGER, "secure-port", PROBES),
    own(CONTROLLER_MANAGER, "service-account-private-key-file", CERTIFICATES),
    own(SCHEDULER, "kubeconfig", LEAVE_OUT),
    own(SCHEDULER, "authentication-kubeconfig", LEAVE_OUT),
    own(SCHEDULER, "authorization-kubeconfig", LEAVE_OUT),
    own(SCHEDULER, "master", LEAVE_OUT),
    own(SCHEDULER, "secure-port", PROBES),
    own(KUBELET, "config", "put its settings into spec.kubernetes.kubeletConfiguration"),
    own(KUBELET, "kubeconfig", LEAVE_OUT),
    own(KUBELET, "bootstrap-kubeconfig", LEAVE_OUT),
    own(KUBELET, "cert-dir", CERTIFICATES),
    own(KUBELET, "client-ca-file", CERTIFICATES),
    own(KUBELET, "node-ip", "set `internalAddress` of the host"),
    own(KUBELET, "hostname-override", NODE_NAME),
    own(KUBELET, "container-runtime-endpoint", "remove it: the kubelet uses the containerd that kk installs"),
    own(KUBELET, "image-service-endpoint", "remove it: the kubelet uses the containerd that kk installs"),
    own(KUBELET, "cgroup-driver", "remove it: kk gives the kubelet and containerd the same one"),
    own(KUBELET, "pod-manifest-path", "remove it: kubeadm puts the pods of the control plane into /etc/kubernetes/manifests"),
    own(KUBELET, "cluster-dns", "set clusterDNS in spec.kubernetes.kubeletConfiguration, or leave it to kk"),
    own(KUBELET, "cluster-domain", "set spec.kubernetes.dnsDomain"),
    own(KUBELET, "pod-cidr", "remove it: kube-controller-manager gives each node its range"),
    own(KUBELET, "register-node", "remove it: kubeadm waits until the kubelet has registered its node"),
    own(KUBELET, "port", PROBES),
    own(KUBELET, "healthz-port", "set healthzPort in spec.kubernetes.kubeletConfiguration"),
    own(KUBELET, "healthz-bind-address", "set healthzBindAddress in spec.kubernetes.kubeletConfiguration"),
    own(KUBELET, "pod-max-pids", "set spec.kubernetes.podPidsLimit"),
];

/// Values that kk or kubeadm sets, too: such a flag changes nothing.
const SAME: [(&str, &str, &str); 10] = [
    (APISERVER, "enable-bootstrap-token-auth", "true"),
    (APISERVER, "secure-port", "6443"),
    (CONTROLLER_MANAGER, "secure-port", "10257"),
    (SCHEDULER, "secure-port", "10259"),
    (KUBELET, "cgroup-driver", "systemd"),
    (KUBELET, "register-node", "true"),
    (KUBELET, "port", "10250"),
    (KUBELET, "pod-manifest-path", MANIFESTS),
    (KUBELET, "healthz-port", "10248"),
    (KUBELET, "healthz-bind-address", "127.0.0.1"),
];

fn is_same(field: &str, name: &str, value: &str) -> bool {
    SAME.iter().any(|(of, flag, same)| {
        let is_equal = value == *same || value.starts_with('/') && Path::new(value) == Path::new(same);
        (*of, *flag) == (field, name) && is_equal
    })
}

/// Checks one flag. `is_removed`: another finding already reports that the version no longer has it.
pub(super) fn check(
    (field, name, value): (&str, &str, &str),
    version: KubeVersion,
    is_removed: bool,
    at: At<'_>,
    out: &mut Findings<'_>,
) {
    let own = OWN.iter().find(|own| (own.field, own.name) == (field, name));
    if let Some(own) = own.filter(|_| !is_same(field, name, value)) {
        return out.error(at, format!("`--{name}` of {} belongs to kk", component(field)), own.instead);
    }
    if !is_removed {
        check_name(field, name, version, at, out);
    }
    match name {
        "feature-gates" => {
            let gates = value.split(',').filter_map(|gate| gate.split('=').next());
            gates.for_each(|gate| check_gate(gate.trim(), version, at, out));
        }
        "enable-admission-plugins" | "disable-admission-plugins" | "admission-control"
            if field == APISERVER =>
        {
            value.split(',').for_each(|plugin| check_plugin(plugin.trim(), version, at, out));
        }
        _ => check_file(field, name, value, at, out),
    }
}

fn component(field: &str) -> &'static str {
    match field {
        APISERVER => "kube-apiserver",
        CONTROLLER_MANAGER => "kube-controller-manager",
        SCHEDULER => "kube-scheduler",
        _ => "the kubelet",
    }
}

fn check_name(field: &str, name: &str, version: KubeVersion, at: At<'_>, out: &mut Findings<'_>) {
    let known = || {
        rows(FLAGS).filter_map(|row| {
            let [of, name, since @ ..] = &row[..] else { return None };
            (*of == field).then(|| (*name, since.first().copied()))
        })
    };
    let program = component(field);
    let Some((_, since)) = known().find(|(flag, _)| *flag == name) else {
        let elsewhere = rows(FLAGS).find(|row| row[1] == name).map(|row| row[0]);
        let hint = did_you_mean(name, known().map(|(name, _)| name))
            .or_else(|| {
                elsewhere
                    .map(|field| format!("it is a flag of {}: write it into `{field}`", component(field)))
            })
            .unwrap_or_else(|| {
                format!("`{} --help` lists the flags of a version", program.trim_start_matches("the "))
            });
        let message = format!("Kubernetes {version} has no flag `--{name}` of {program}: it does not start");
        return out.error(at, message, hint);
    };
    if let Some(since) = since.and_then(minor).filter(|since| !version.at_least(1, *since)) {
        let message = format!(
            "Kubernetes {version} has no flag `--{name}` of {program} (new in 1.{since}): it does not start"
        );
        out.error(at, message, format!("remove it, or use Kubernetes 1.{since} or newer"));
    }
}

/// Only a warning, because a patch release may have a gate that its `.0` lacks.
pub(super) fn check_gate(name: &str, version: KubeVersion, at: At<'_>, out: &mut Findings<'_>) {
    if name.is_empty() || GROUPS_OF_GATES.contains(&name) || super::removed::is_judged(name, version) {
        return;
    }
    let known = || rows(GATES).map(|row| (row[0], row.get(1).and_then(|since| minor(since))));
    match known().find(|(gate, _)| *gate == name) {
        Some((_, Some(since))) if !version.at_least(1, since) => {
            let message = format!(
                "Kubernetes {version} has no feature gate `{name}` (new in 1.{since}): a component that gets it does not start"
            );
            out.warning(at, message, format!("remove it, or use Kubernetes 1.{since} or newer"));
        }
        Some(_) => {}
        None => {
            let usable = known().filter(|(_, since)| since.is_none_or(|since| version.at_least(1, since)));
            let usable =
                usable.map(|(gate, _)| gate).filter(|gate| !super::removed::is_judged(gate, version));
            let hint = did_you_mean(name, usable).unwrap_or_else(|| "check the name".to_owned());
            let message = format!(
                "`{name}` is not known as a feature gate: a component that does not know it does not start"
            );
            out.warning(at, message, hint);
        }
    }
}

fn check_plugin(name: &str, version: KubeVersion, at: At<'_>, out: &mut Findings<'_>) {
    if name.is_empty() {
        return;
    }
    let is_there = |row: &[&str]| {
        minor(row[1]).is_none_or(|since| version.at_least(1, since))
            && minor(row[2]).is_none_or(|gone| !version.at_least(1, gone))
    };
    let row = rows(PLUGINS).find(|row| row[0] == name);
    let message =
        format!("Kubernetes {version} has no admission plugin `{name}`: kube-apiserver does not start");
    match row {
        Some(row) if is_there(&row) => {}
        Some(row) => {
            let hint = match minor(row[2]).filter(|gone| version.at_least(1, *gone)) {
                _ if name == "PodSecurityPolicy" => {
                    "remove it: PodSecurity is on, by labels of namespaces".to_owned()
                }
                Some(gone) => format!("remove it: it was removed in 1.{gone}"),
                None => format!("remove it, or use Kubernetes {} or newer", row[1]),
            };
            out.error(at, message, hint);
        }
        None => {
            let known: Vec<&str> = rows(PLUGINS).filter(|row| is_there(row)).map(|row| row[0]).collect();
            let hint = did_you_mean(name, known.into_iter())
                .unwrap_or_else(|| "`kube-apiserver --help` lists the plugins of a version".to_owned());
            out.error(at, message, hint);
        }
    }
}

/// Directories of the host that kubeadm mounts into the pods of the API server and of the controller manager.
const MOUNTED: [&str; 7] = [
    "/etc/kubernetes/pki/",
    "/etc/ssl/certs/",
    "/etc/ssl/etcd/ssl/",
    "/etc/ca-certificates/",
    "/etc/pki/",
    "/usr/share/ca-certificates/",
    "/usr/local/share/ca-certificates/",
];

/// Checks a path in a flag. Components of the control plane run in pods, which see few files of their host.
fn check_file(field: &str, name: &str, value: &str, at: At<'_>, out: &mut Findings<'_>) {
    const ENDS: [&str; 9] = [
        "file",
        "-config",
        "kubeconfig",
        "-certificate",
        "-key",
        "-cert",
        "-authority",
        "-manifest",
        "-log-path",
    ];
    let names_file = name == "config" || ENDS.iter().any(|end| name.ends_with(end));
    if field == KUBELET || !names_file || !value.contains('/') {
        return;
    }
    let is_seen = |path: &str| field != SCHEDULER && MOUNTED.iter().any(|mounted| path.starts_with(mounted));
    if value.split([',', ':']).filter(|path| path.contains('/')).all(is_seen) {
        return;
    }
    let program = component(field);
    if name == "audit-log-path" {
        let message = format!("`{value}` is in the container of {program}, and ends with it");
        let hint = "write audit-log-path=- : the log of the pod gets it, and stays on the host";
        return out.warning(at, message, hint);
    }
    let message =
        format!("`{value}` of `--{name}` is not in the pod of {program}, which does not start without it");
    let hint = match field {
        SCHEDULER => "remove it: the pod sees no file of the host but its kubeconfig",
        _ => {
            "put the file into /etc/kubernetes/pki on each control plane, and name it there: the pod sees this directory"
        }
    };
    out.error(at, message, hint);
}

/// Settings of etcd that kk writes, and the fields that set them.
const ETCD_OWN: [(&str, &str); 29] = [
    ("NAME", ""),
    ("DATA_DIR", "dataDir"),
    ("WAL_DIR", ""),
    ("CONFIG_FILE", ""),
    ("LISTEN_CLIENT_URLS", "port"),
    ("ADVERTISE_CLIENT_URLS", "port"),
    ("LISTEN_PEER_URLS", "peerPort"),
    ("INITIAL_ADVERTISE_PEER_URLS", "peerPort"),
    ("INITIAL_CLUSTER", ""),
    ("INITIAL_CLUSTER_STATE", ""),
    ("INITIAL_CLUSTER_TOKEN", ""),
    ("FORCE_NEW_CLUSTER", ""),
    ("HEARTBEAT_INTERVAL", "heartbeatInterval"),
    ("ELECTION_TIMEOUT", "electionTimeout"),
    ("SNAPSHOT_COUNT", "snapshotCount"),
    ("AUTO_COMPACTION_RETENTION", "autoCompactionRetention"),
    ("METRICS", "metrics"),
    ("QUOTA_BACKEND_BYTES", "quotaBackendBytes"),
    ("MAX_REQUEST_BYTES", "maxRequestBytes"),
    ("MAX_SNAPSHOTS", "maxSnapshots"),
    ("MAX_WALS", "maxWals"),
    ("LOG_LEVEL", "logLevel"),
    ("TRUSTED_CA_FILE", ""),
    ("CERT_FILE", ""),
    ("KEY_FILE", ""),
    ("CLIENT_CERT_AUTH", ""),
    ("AUTO_TLS", ""),
    ("PEER_CERT_FILE", ""),
    ("PEER_KEY_FILE", ""),
];

/// Checks `spec.etcd.extraArgs`. They are the last lines in etcd's environment file, so they override settings of kk.
pub(super) fn check_etcd(lines: &[String], at: At<'_>, out: &mut Findings<'_>) {
    let mut first = BTreeMap::new();
    for (i, line) in lines.iter().enumerate() {
        let Some((name, _)) = line.split_once('=') else { continue };
        let at = at.item(i);
        if let Some(other) = first.insert(name, at) {
            out.error(at, format!("`{name}` is given twice"), format!("the other is{}", other.in_line()));
        }
        let bare = name.strip_prefix("ETCD_").unwrap_or(name);
        // The rule for clients also applies to peers, and to the discovery of a cluster, which kk creates itself.
        let prefixed = bare.starts_with("PEER_") || bare.starts_with("DISCOVERY");
        let own = ETCD_OWN.iter().find(|(own, _)| *own == bare).or(prefixed.then_some(&("", "")));
        if let Some((_, setting)) = own {
            let hint = match *setting {
                "" => "remove it: kk gives it its value".to_owned(),
                setting => format!("set spec.etcd.{setting}"),
            };
            out.error(
                at,
                format!("`{name}` belongs to kk, which looks for etcd where its own settings say"),
                hint,
            );
        }
    }
}

fn minor(text: &str) -> Option<u32> {
    text.strip_prefix("1.")?.parse().ok()
}

fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(' ').collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_row_of_the_data_is_complete_and_stands_once() {
        for (text, least, length) in [(FLAGS, 500, 2..=3), (GATES, 370, 1..=2), (PLUGINS, 40, 3..=3)] {
            let mut seen = BTreeSet::new();
            for row in rows(text) {
                assert!(length.contains(&row.len()), "{row:?}");
                assert!(row.last().is_some_and(|last| !last.is_empty()), "{row:?}");
                assert!(seen.insert(row[..row.len().min(2)].join(" ")), "{row:?}");
            }
            assert!(seen.len() >= least, "{}", seen.len());
        }
    }

    #[test]
    fn flags_of_kks_own_are_flags() {
        for own in &OWN {
            let known = rows(FLAGS).any(|row| (row[0], row[1]) == (own.field, own.name));
            assert!(known, "{} {}", own.field, own.name);
        }
    }
}
