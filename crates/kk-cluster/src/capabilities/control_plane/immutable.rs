//! Settings that a running cluster cannot change: addresses are handed out, certificates and kubeconfigs name the
//! endpoint, data lies in etcd, and another version is an upgrade, never an accident. They are read from the files of the
//! control plane, so that they are known also while its API is down.

use crate::{findings::Setting, inputs::Inputs};

/// Lines of name and value, separated by a tab: flags of the control plane as kubeadm has written them, the API's
/// address in the administrator's kubeconfig, and the kubelet's domain. Nothing where no cluster is.
pub(crate) const QUERY: &str = "sed -nE \
    -e 's/^ *- --(cluster-cidr|service-cluster-ip-range|etcd-servers)=/\\1\\t/p' \
    -e 's/^ *(server|clusterDomain): +/\\1\\t/p' \
    -e 's/^ *image: .*kube-apiserver:/version\\t/p' \
    /etc/kubernetes/manifests/kube-apiserver.yaml /etc/kubernetes/manifests/kube-controller-manager.yaml \
    /etc/kubernetes/admin.conf /var/lib/kubelet/config.yaml 2>/dev/null || :";

pub(super) fn settings(inputs: &Inputs) -> Vec<Setting> {
    let spec = inputs.spec;
    let answer = inputs.facts(inputs.api_host).and_then(|facts| facts.values.get("fixed"));
    let line = |name: &str| {
        let mut lines = answer?.lines().filter_map(|line| line.split_once('\t'));
        lines.find(|(line, _)| *line == name).map(|(_, value)| value.trim().to_owned())
    };
    let etcd: Vec<String> = spec
        .etcd_hosts()
        .iter()
        .map(|host| format!("https://{}:{}", host.internal_address, spec.etcd.port))
        .collect();
    let setting = |name, what, field, wanted| Setting { host: None, what, field, there: line(name), wanted };
    vec![
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
        setting("server", "API is at", "spec.controlPlaneEndpoint", format!("https://{}", inputs.endpoint())),
        setting("etcd-servers", "etcd is at", "spec.etcd and spec.roleGroups.etcd", etcd.join(",")),
    ]
}
