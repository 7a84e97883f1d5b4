//! `spec.controlPlaneEndpoint`.

use std::net::{IpAddr, Ipv4Addr};

use kk_config::{KUBE_VIP_VARIABLES, v1alpha2};
use serde_json::Value;

use super::{
    Cluster,
    text::{Text, number, scalar},
};

/// Further variables that kk sets unless the file does.
const DEFAULTS: [(&str, &str); 4] = [
    ("prometheus_server", "127.0.0.1:2112"),
    ("vip_leaseduration", "15"),
    ("vip_renewdeadline", "10"),
    ("vip_retryperiod", "2"),
];

/// How clients reach the API.
#[derive(Debug, Default)]
pub(super) struct Endpoint {
    /// Empty without `controlPlaneEndpoint` in the configuration of kubeadm.
    pub(super) domain: String,
    pub(super) port: Option<u16>,
    /// The load balancer's.
    pub(super) address: Option<Ipv4Addr>,
    pub(super) balancer: Option<Balancer>,
}

#[derive(Debug)]
pub(super) enum Balancer {
    Haproxy,
    KubeVip(Vec<(String, String)>, bool),
}

impl Endpoint {
    pub(super) fn of(config: &Value, haproxy: Option<&Value>, kube_vip: Option<&Value>) -> Self {
        let authority = config["controlPlaneEndpoint"].as_str().unwrap_or_default();
        let (domain, port) = authority
            .rsplit_once(':')
            .filter(|(_, port)| port.bytes().all(|c| c.is_ascii_digit()))
            .map_or((authority, None), |(domain, port)| (domain, port.parse().ok()));
        let mut endpoint =
            Self { domain: domain.to_owned(), port, address: domain.parse().ok(), balancer: None };
        if haproxy.is_some() {
            endpoint.balancer = Some(Balancer::Haproxy);
        } else if let Some(pod) = kube_vip {
            let env = variables(pod);
            let address = env.iter().find(|(name, _)| name == "address");
            endpoint.address = address.and_then(|(_, address)| address.parse().ok());
            let is_of_kk = pod["metadata"]["labels"]["app.kubernetes.io/component"] == "api-balancer";
            endpoint.balancer = Some(Balancer::KubeVip(env, is_of_kk));
        } else if endpoint.address.is_none() && !domain.is_empty() {
            // kk and KubeKey write the load balancer's address after its name.
            let mut names = super::names(config);
            let after = names.by_ref().find(|name| *name == domain).and_then(|_| names.next());
            endpoint.address = after
                .and_then(|address| address.parse::<Ipv4Addr>().ok())
                .filter(|address| !address.is_loopback());
        }
        endpoint
    }
}

fn variables(pod: &Value) -> Vec<(String, String)> {
    let env = pod["spec"]["containers"][0]["env"].as_array().into_iter().flatten();
    env.filter_map(|variable| Some((variable["name"].as_str()?.into(), variable["value"].as_str()?.into())))
        .collect()
}

/// `spec.controlPlaneEndpoint`.
pub(super) fn write(cluster: &Cluster<'_>, out: &mut Text, depth: usize) {
    let Endpoint { domain, port, address, balancer } = &cluster.endpoint;
    let defaults = v1alpha2::ControlPlaneEndpoint::default();
    if domain.is_empty() {
        out.note(depth, "The API of this cluster has no name: kubeadm has no controlPlaneEndpoint.");
    } else if *domain != defaults.domain {
        out.line(depth, format!("domain: {}", scalar(domain)));
    }
    if let Some(port) = port.filter(|port| *port != defaults.port) {
        out.line(depth, format!("port: {port}"));
    }
    match balancer {
        Some(Balancer::Haproxy) => out.line(depth, "internalLoadbalancer: haproxy"),
        Some(Balancer::KubeVip(env, is_of_kk)) => {
            out.line(depth, "internalLoadbalancer: kube-vip");
            write_address(*address, out, depth);
            out.section(depth, "kubevip", |out, depth| kube_vip(env, *is_of_kk, out, depth));
        }
        None => own_balancer(cluster, out, depth),
    }
}

fn write_address(address: Option<Ipv4Addr>, out: &mut Text, depth: usize) {
    if let Some(address) = address {
        out.line(depth, format!("address: {address}"));
    }
}

fn own_balancer(cluster: &Cluster<'_>, out: &mut Text, depth: usize) {
    let control_planes = cluster.control_planes();
    let is_first = |address: Ipv4Addr| control_planes[0].v4() == IpAddr::V4(address);
    match cluster.endpoint.address {
        Some(address) if control_planes.len() == 1 && is_first(address) => {}
        Some(address) => write_address(Some(address), out, depth),
        None if cluster.endpoint.domain.is_empty() && control_planes.len() == 1 => {}
        None => {
            out.note(
                depth,
                "The address of the API is not stored in the cluster. Unless your DNS resolves the name, write the \
                 load balancer's IPv4 address as `address` and remove `externalDNS`.",
            );
            out.line(depth, "externalDNS: true");
        }
    }
}

fn kube_vip(env: &[(String, String)], is_of_kk: bool, out: &mut Text, depth: usize) {
    let value = |name: &str| env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    if value("bgp_enable") == Some("true") {
        out.line(depth, "mode: BGP");
        if let Some(asn) = value("bgp_as").filter(|asn| *asn != "65000") {
            out.optional(depth, format!("asn: {}", number(asn)));
        }
        out.section(depth, "peers", |out, depth| {
            for peer in value("bgp_peers").unwrap_or_default().split(',').filter(|peer| !peer.is_empty()) {
                // Address, system, password, and whether it is in another network.
                let parts: Vec<&str> = peer.split(':').collect();
                let [address, asn, ..] = parts[..] else {
                    out.note(depth, &format!("This router was not understood: {peer}"));
                    continue;
                };
                let multihop = if parts.get(3) == Some(&"true") { ", multihop: true" } else { "" };
                out.line(
                    depth,
                    format!("- {{address: {}, asn: {}{multihop}}}", scalar(address), number(asn)),
                );
                if parts.get(2).is_some_and(|password| !password.is_empty()) {
                    out.note(depth, "This router has a password, for which this file has no field.");
                }
            }
        });
    } else if let Some(interface) = value("vip_interface") {
        out.note(depth, "By default, kk uses the interface of each host's internal address.");
        out.note(depth, &format!("interface: {}", scalar(interface)));
    }
    let is_own = |name: &str, value: &str| {
        KUBE_VIP_VARIABLES.contains(&name)
            || DEFAULTS.iter().any(|(known, default)| (*known, *default) == (name, value))
    };
    out.section(depth, "env", |out, depth| {
        for (name, value) in env.iter().filter(|(name, value)| is_of_kk && !is_own(name, value)) {
            out.optional(depth, format!("{}: {}", scalar(name), scalar(value)));
        }
    });
}
