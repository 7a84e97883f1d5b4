//! Settings that a create cannot change on a running cluster: addresses are handed out, certificates and kubeconfigs
//! name the endpoint, data lies in etcd, and another version is an upgrade, never a thing of chance. They are read from
//! the files of the first control plane, so that they are known also while its API is down.

use std::collections::BTreeSet;

use kk_config::Spec;
use kk_engine::Facts;

use super::{Finding, Severity};

/// Lines of name and value, separated by a tab: flags of the control plane as kubeadm has written them, the API's
/// address in the administrator's kubeconfig, and the kubelet's domain. Nothing where no cluster is.
pub(crate) const QUERY: &str = "sed -nE \
    -e 's/^ *- --(cluster-cidr|service-cluster-ip-range|etcd-servers)=/\\1\\t/p' \
    -e 's/^ *(server|clusterDomain): +/\\1\\t/p' \
    -e 's/^ *image: .*kube-apiserver:/version\\t/p' \
    /etc/kubernetes/manifests/kube-apiserver.yaml /etc/kubernetes/manifests/kube-controller-manager.yaml \
    /etc/kubernetes/admin.conf /var/lib/kubelet/config.yaml 2>/dev/null || :";

/// A setting of the file beside its line in the answer.
struct Setting {
    /// Name of the line.
    line: &'static str,
    /// What it is, in a sentence about the cluster.
    what: &'static str,
    /// Where the file says it.
    field: &'static str,
    /// What the file says; several values are separated by commas.
    wanted: String,
}

fn settings(spec: &Spec) -> [Setting; 6] {
    let endpoint = &spec.control_plane_endpoint;
    let etcd: Vec<String> = spec
        .etcd_hosts()
        .iter()
        .map(|host| format!("https://{}:{}", host.internal_address, spec.etcd.port))
        .collect();
    let setting = |line, what, field, wanted| Setting { line, what, field, wanted };
    [
        setting("version", "version is", "spec.kubernetes.version", spec.kubernetes.version.to_string()),
        setting("cluster-cidr", "pods are in", "spec.network.kubePodsCIDR", spec.network.pod_subnet()),
        setting(
            "service-cluster-ip-range",
            "Services are in",
            "spec.network.kubeServiceCIDR",
            spec.network.service_subnet(),
        ),
        setting(
            "clusterDomain",
            "DNS domain is",
            "spec.kubernetes.dnsDomain",
            spec.kubernetes.dns_domain.clone(),
        ),
        setting(
            "server",
            "API is at",
            "spec.controlPlaneEndpoint",
            format!("https://{}:{}", endpoint.domain, endpoint.port),
        ),
        setting("etcd-servers", "etcd is at", "spec.etcd and spec.roleGroups.etcd", etcd.join(",")),
    ]
}

/// An error for each of them that the file changes.
pub(super) fn check(spec: &Spec, first: &Facts, list: &mut Vec<Finding>) {
    let Some(answer) = first.values.get("fixed") else { return };
    let there = |name: &str| {
        let lines = answer.lines().filter_map(|line| line.split_once('\t'));
        lines.filter(|(line, _)| *line == name).map(|(_, value)| value.trim()).next()
    };
    for Setting { line, what, field, wanted } in settings(spec) {
        let Some(there) = there(line).filter(|there| values(there) != values(&wanted)) else { continue };
        list.push(Finding {
            severity: Severity::Error,
            host: None,
            message: format!("the cluster's {what} {there}, the file says {wanted}"),
            hint: format!(
                "put {field} back: a running cluster cannot change it; or delete the cluster first and create it anew"
            ),
        });
    }
}

/// The values of a list. Their order says nothing.
fn values(list: &str) -> BTreeSet<&str> {
    list.split(',').map(|value| value.trim().trim_matches('"')).collect()
}
