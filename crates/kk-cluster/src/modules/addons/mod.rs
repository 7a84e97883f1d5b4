//! What makes nodes a network: kube-proxy, the network plugin and CoreDNS, applied together once the nodes are there.
//!
//! A pod that reaches a kubelet before that has read the Services is refused and tried again ten seconds later, and an
//! image that is missing costs as much. So the conditions are made true first, then everything is applied at once.

mod apply_addons;

use kk_config::{NetworkPlugin, ProxyMode};
use kk_engine::Module;
use serde_json::json;

use crate::{BuildError, Target};

/// Applies what is missing or changed.
pub(crate) fn module(target: &Target) -> Result<Module, BuildError> {
    Ok(Module::new("addons", vec![apply_addons::task(target)?]))
}

/// A manifest of this program: name of its note, its text, and the workload that must exist.
struct Manifest {
    name: &'static str,
    text: String,
    workload: &'static str,
}

fn manifests(target: &Target) -> Result<Vec<Manifest>, BuildError> {
    let mut list = Vec::new();
    if let NetworkPlugin::Flannel(backend) = target.spec.network.plugin {
        let network = &target.spec.network;
        let values = json!({
            "flannel_tag": target.versions.flannel,
            "flannel_image": target.images.flannel(),
            "cni_plugin_image": target.images.flannel_cni_plugin(),
            "pods": network.pods,
            "pods_v6": network.pods_v6,
            "nftables": target.spec.kubernetes.proxy_mode == ProxyMode::Nftables,
            "backend": backend.as_str(),
            "api_address": api_address(target),
            "api_port": target.spec.control_plane_endpoint.port,
            "config_sum": format!("{} {:?} {}", network.pods, network.pods_v6, backend.as_str()),
        });
        list.push(Manifest {
            name: "flannel",
            text: target.templates.render("network/flannel.yaml", &values)?,
            workload: "kube-flannel/kube-flannel-ds",
        });
    }
    list.push(Manifest {
        name: "coredns",
        text: target.templates.render("dns/coredns.yaml", &coredns_values(target))?,
        workload: "kube-system/coredns",
    });
    Ok(list)
}

/// How pods of the host network reach the API before Services work: an address where there is one, else the name.
fn api_address(target: &Target) -> String {
    let endpoint = &target.spec.control_plane_endpoint;
    endpoint.address.map_or_else(|| endpoint.domain.clone(), |address| address.to_string())
}

fn coredns_values(target: &Target) -> serde_json::Value {
    let dns = &target.spec.dns;
    let forward = if !dns.upstream_servers.is_empty() {
        dns.upstream_servers.join(" ")
    } else if target.any_node(|facts| facts.nameservers.is_empty()) {
        // CoreDNS ends at once when it forwards to a list that is empty.
        String::new()
    } else {
        "/etc/resolv.conf".to_owned()
    };
    json!({
        "dns_domain": target.spec.kubernetes.dns_domain,
        "dns_address": target.spec.network.dns_service_address(),
        "forward": forward,
        "additional": dns.coredns_additional_configs.lines().collect::<Vec<_>>(),
        "replicas": target.spec.nodes().len().min(2),
        "image": target.images.coredns(),
    })
}
