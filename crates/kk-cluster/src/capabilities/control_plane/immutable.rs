//! Lists settings that a running cluster cannot change: addresses are assigned, certificates and kubeconfigs contain the
//! endpoint, data is stored in etcd, and another version requires an explicit upgrade. They are read from the files of the
//! control plane, so that they are known even if its API is down.

use std::collections::BTreeSet;

use super::{moves, newest};
use crate::{
    base::{
        findings::Setting,
        host_layout::KUBELET_CONF,
        questions::{SETTINGS, etcd_servers},
    },
    model::{
        command::{ETCD_MEMBERS, VERSION},
        inputs::Inputs,
        kubeadm,
    },
};
use kk_config::{Host, Role};

pub(super) fn settings(inputs: &Inputs) -> Vec<Setting> {
    let spec = inputs.spec;
    let there = inputs.facts(inputs.api_host).and_then(|facts| facts.answer(&SETTINGS).answered());
    let line = |name: &str| there.as_ref().and_then(|there| there.get(name).cloned());
    let setting = |name, what, field, wanted| Setting { host: None, what, field, there: line(name), wanted };
    let mut version = setting("version", "version is", VERSION, spec.kubernetes.version.to_string());
    // An upgrade may have ended early, and may not have reached the control plane at which the API is queried.
    let newest =
        newest(inputs).map(|(version, _)| version).filter(|newest| *newest > spec.kubernetes.version);
    version.there = newest.map(|newest| newest.to_string()).or(version.there);
    let mut settings = vec![
        version,
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
        setting("server", "API is at", "spec.controlPlaneEndpoint", inputs.endpoint().url()),
    ];
    let etcd = kubeadm::etcd_endpoints(spec);
    // New members in the file join, and members with another address move.
    let moving = moves::etcd_of_before(inputs);
    let is_known = |member: &String| etcd.contains(member) || moving.contains(member);
    let stays = |there: BTreeSet<String>| there.iter().all(is_known);
    if !inputs.facts(inputs.api_host).and_then(etcd_servers).is_some_and(stays) {
        settings.push(setting("etcd-servers", "etcd is at", ETCD_MEMBERS, etcd.join(",")));
    }
    settings.extend(inputs.nodes().into_iter().filter_map(|(host, _)| role(inputs, host)));
    settings
}

/// A node keeps the role with which it joined: a worker cannot become a control plane, and a control plane cannot become a
/// worker.
fn role(inputs: &Inputs, host: &Host) -> Option<Setting> {
    let facts = inputs.facts(host).filter(|facts| facts.files.contains_key(KUBELET_CONF))?;
    let name = |is_control_plane| if is_control_plane { "a control plane" } else { "a worker" };
    // The manifest may be damaged or lost; a control plane also has the key of the CA.
    let is_control_plane = ["/etc/kubernetes/manifests/kube-apiserver.yaml", "/etc/kubernetes/pki/ca.key"]
        .iter()
        .any(|path| facts.files.contains_key(*path));
    inputs.has_joined(host).then(|| Setting {
        host: Some(host.name.clone()),
        what: "role is",
        field: "spec.roleGroups",
        there: Some(name(is_control_plane).to_owned()),
        wanted: name(host.has_role(&Role::ControlPlane)).to_owned(),
    })
}
