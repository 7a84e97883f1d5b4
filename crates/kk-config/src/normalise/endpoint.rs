//! `spec.controlPlaneEndpoint`.

use super::flags::Argument;
use super::removed::APISERVER;
use super::syntax;
use crate::findings::{At, Findings};
use crate::spec::{Balancer, Bgp, ControlPlaneEndpoint, Host, KubeVip, Role};
use crate::v1alpha2::{self, InternalLoadbalancer, KubeVipMode};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

const ANY_LOAD_BALANCER: &str = "set `internalLoadbalancer: haproxy`, or give the address of a load balancer of your own as \
     `controlPlaneEndpoint.address`";

pub(super) fn endpoint(
    doc: v1alpha2::ControlPlaneEndpoint,
    hosts: &[Host],
    role_groups: &BTreeMap<Role, Vec<String>>,
    at: At<'_>,
    out: &mut Findings<'_>,
) -> ControlPlaneEndpoint {
    let names = role_groups.get(&Role::ControlPlane).map(Vec::as_slice).unwrap_or_default();
    let host = |name: &String| hosts.iter().find(|host| &host.name == name);
    let control_planes: Vec<Ipv4Addr> =
        names.iter().filter_map(host).map(|host| host.internal_address).collect();

    let given = doc.address.as_deref().and_then(|text| own_address(text, at.key("address"), out));
    if doc.internal_loadbalancer != Some(InternalLoadbalancer::KubeVip) && at.key("kubevip").is_value() {
        let message = "the settings of kube-vip have no effect: `internalLoadbalancer` is not `kube-vip`";
        out.warning(at.key("kubevip"), message, "remove them, or set `internalLoadbalancer: kube-vip`");
    }
    match doc.internal_loadbalancer {
        Some(InternalLoadbalancer::Haproxy) => return haproxy(doc, hosts, at, out),
        Some(InternalLoadbalancer::KubeVip) => return kube_vip(doc, given, hosts, at, out),
        None => {}
    }
    let external_address = given.is_some_and(|address| !control_planes.contains(&address));
    let readable = doc.address.is_none() || given.is_some();
    let direct = readable && !external_address && !doc.external_dns;
    let address = given.or_else(|| control_planes.first().copied().filter(|_| !doc.external_dns));
    check_domain(&doc, address, hosts, at.key("domain"), out);
    if let Some(address) = address.filter(|_| direct && control_planes.len() > 1) {
        let number = control_planes.len();
        let message = format!(
            "{number} control planes without a load balancer: if the one at {address} fails, no node can \
             reach the API"
        );
        // Only a create of a new cluster refuses such a file: existing clusters must stay manageable.
        let hint = match given {
            Some(_) => ANY_LOAD_BALANCER.to_owned(),
            None => format!("{ANY_LOAD_BALANCER}; `address: {address}` keeps it as it is"),
        };
        out.warning(at, message, hint);
    }
    if direct && doc.port != ControlPlaneEndpoint::API_SERVER_PORT {
        let message = format!("nothing listens on port {}: API servers listen on 6443", doc.port);
        out.error(at.key("port"), message, "use 6443, or give the address of a load balancer");
    }
    ControlPlaneEndpoint {
        domain: doc.domain,
        address,
        port: doc.port,
        external_dns: doc.external_dns,
        external_address,
        has_address: doc.address.is_some(),
        balancer: Balancer::None,
    }
}

/// Checks that API servers listen where a load balancer of kk connects to them: at 127.0.0.1, and at the address of the host or
/// of kube-vip. `at` is the position of `spec`.
pub(super) fn check_bind_address(
    balancer: Option<InternalLoadbalancer>,
    arguments: &[String],
    at: At<'_>,
    out: &mut Findings<'_>,
) {
    let name = match balancer {
        Some(InternalLoadbalancer::Haproxy) => "haproxy",
        Some(InternalLoadbalancer::KubeVip) => "kube-vip",
        None => return,
    };
    for (i, text) in arguments.iter().enumerate() {
        let argument = Argument::read(text);
        let is_everywhere = argument.value.is_some_and(|value| ["0.0.0.0", "::"].contains(&value));
        if argument.name == "bind-address" && !is_everywhere {
            let message = format!(
                "with `internalLoadbalancer: {name}` the API server must listen at all addresses of its host"
            );
            out.error(at.key("kubernetes").key(APISERVER).item(i), message, "remove `bind-address`");
        }
    }
}

/// With haproxy the name resolves to each node itself: control planes use their own API server, workers their haproxy.
fn haproxy(
    doc: v1alpha2::ControlPlaneEndpoint,
    hosts: &[Host],
    at: At<'_>,
    out: &mut Findings<'_>,
) -> ControlPlaneEndpoint {
    if doc.address.is_some() {
        out.error(
            at.key("address"),
            "with `internalLoadbalancer: haproxy` the API has no address of its own: its name resolves to each \
             node itself",
            "remove `address`, or remove `internalLoadbalancer` to use the load balancer at this address",
        );
    }
    if doc.external_dns {
        out.error(
            at.key("externalDNS"),
            "with `internalLoadbalancer: haproxy` the name of the API resolves to each node itself, which a \
             DNS server cannot provide",
            "remove `externalDNS`: kk writes the name into /etc/hosts; or remove `internalLoadbalancer`",
        );
    }
    if doc.port != ControlPlaneEndpoint::API_SERVER_PORT {
        out.error(
            at.key("port"),
            format!(
                "with `internalLoadbalancer: haproxy` the API cannot have port {}: control planes use their \
                 own API server, which listens on 6443",
                doc.port
            ),
            "use 6443",
        );
    }
    if doc.domain.parse::<IpAddr>().is_ok() {
        out.error(
            at.key("domain"),
            format!("the domain `{}` is an address, but haproxy needs a name", doc.domain),
            "give a name as `domain`, such as lb.kubesphere.local",
        );
    } else {
        check_domain(&doc, Some(Ipv4Addr::LOCALHOST), hosts, at.key("domain"), out);
    }
    ControlPlaneEndpoint {
        domain: doc.domain,
        address: Some(Ipv4Addr::LOCALHOST),
        port: doc.port,
        external_dns: false,
        external_address: false,
        has_address: false,
        balancer: Balancer::Haproxy,
    }
}

/// Checks the name of the API, which must resolve to the API. `/etc/hosts` cannot map an address to another address, and it maps
/// the names of hosts to the hosts.
fn check_domain(
    doc: &v1alpha2::ControlPlaneEndpoint,
    address: Option<Ipv4Addr>,
    hosts: &[Host],
    at: At<'_>,
    out: &mut Findings<'_>,
) {
    let domain = &doc.domain;
    if let Ok(named) = domain.parse::<IpAddr>() {
        let is_the_address = address.is_some_and(|address| named == address);
        // Without a separate address, the API is at the domain.
        let needs_none = doc.external_dns && address.is_none();
        if !is_the_address && !needs_none {
            let message = match address {
                Some(address) => format!("the domain `{domain}` is an address, but the API is at {address}"),
                None => format!("the domain `{domain}` is an address"),
            };
            let hint = "give a name as `domain`, and the load balancer's address as `address`";
            out.error(at, message, hint);
        }
        return;
    }
    if !syntax::is_dns_name(domain) {
        return out.error(at, format!("`{domain}` cannot be the name of the API"), syntax::DNS_NAME);
    }
    if domain == "localhost" || domain.starts_with("localhost.") {
        let message = format!("`{domain}` resolves to each host itself, not to the API");
        return out.error(at, message, "give the API a name of its own");
    }
    // Also checks the name with the added domain: `/etc/hosts` contains `node1` and `node1.cluster.local`.
    let named = hosts.iter().find(|host| {
        !host.name.is_empty()
            && domain.strip_prefix(&host.name).is_some_and(|rest| rest.is_empty() || rest == ".cluster.local")
    });
    if let Some(host) = named.filter(|host| address != Some(host.internal_address)) {
        let message = match address {
            Some(address) => {
                format!("`{domain}` names the host `{}`, but the API is at {address}", host.name)
            }
            None => format!("`{domain}` names the host `{}`", host.name),
        };
        out.error(at, message, "give the API a name of its own, such as lb.kubesphere.local");
    }
}

/// The autonomous system of KubeKey's kube-vip.
const ASN: u32 = 65000;

/// Environment variables of kube-vip that kk sets, so no file may.
pub const KUBE_VIP_VARIABLES: [&str; 19] = [
    "address",
    "bgp_as",
    "bgp_enable",
    "bgp_peers",
    "bgp_routerid",
    "control_plane_health_check_address",
    "control_plane_health_check_ca_path",
    "cp_enable",
    "cp_namespace",
    "k8s_config_file",
    "kubernetes_addr",
    "lb_enable",
    "port",
    "svc_enable",
    "vip_arp",
    "vip_interface",
    "vip_leaderelection",
    "vip_nodename",
    "vip_subnet",
];

/// With kube-vip the name resolves to an address that one of the control planes has.
fn kube_vip(
    doc: v1alpha2::ControlPlaneEndpoint,
    given: Option<Ipv4Addr>,
    hosts: &[Host],
    at: At<'_>,
    out: &mut Findings<'_>,
) -> ControlPlaneEndpoint {
    if doc.address.is_none() {
        out.missing(
            at,
            "kube-vip needs an address",
            "set `controlPlaneEndpoint.address` to a free address of the control planes' network",
        );
    }
    let is_own = |host: &&Host| {
        given.is_some_and(|given| host.internal_address == given || host.address == given.to_string())
    };
    if let Some(host) = hosts.iter().find(is_own) {
        let message = format!("the address of kube-vip is the address of host `{}`", host.name);
        out.error(at.key("address"), message, "give an address that no host has");
    }
    if doc.external_dns {
        out.error(
            at.key("externalDNS"),
            "kube-vip starts after the nodes have joined, so kk has to change the name of the API then",
            "remove `externalDNS`: kk writes the name into /etc/hosts; or use a load balancer of your own",
        );
    }
    if doc.port != ControlPlaneEndpoint::API_SERVER_PORT {
        let message = format!("nothing listens on port {}: API servers listen on 6443", doc.port);
        out.error(at.key("port"), message, "use 6443");
    }
    check_domain(&doc, given, hosts, at.key("domain"), out);
    let settings = doc.kubevip;
    let at = at.key("kubevip");
    let is_bgp = settings.mode == Some(KubeVipMode::Bgp);
    if is_bgp && settings.peers.is_empty() {
        out.error(
            at,
            "kube-vip in mode BGP has no router to announce its address to",
            "list routers as `kubevip.peers`, each with `address` and `asn`; or use mode ARP",
        );
    }
    if !is_bgp && !settings.peers.is_empty() {
        out.error(at.key("peers"), "only mode BGP uses peers", "set `mode: BGP`, or remove `peers`");
    }
    for name in settings.env.keys().filter(|name| KUBE_VIP_VARIABLES.contains(&name.as_str())) {
        let at = at.key("env").name(name);
        out.error(at, format!("kk itself sets `{name}` of kube-vip"), "remove it");
    }
    let bgp = || Bgp { asn: settings.asn.unwrap_or(ASN), peers: settings.peers.clone() };
    ControlPlaneEndpoint {
        domain: doc.domain,
        address: given,
        port: doc.port,
        external_dns: false,
        external_address: true,
        has_address: given.is_some(),
        balancer: Balancer::KubeVip(KubeVip {
            bgp: is_bgp.then(bgp),
            interface: settings.interface,
            env: settings.env,
        }),
    }
}

fn own_address(text: &str, at: At<'_>, out: &mut Findings<'_>) -> Option<Ipv4Addr> {
    let address = text.parse().ok();
    if address.is_none() {
        let hint = "give an IPv4 address; for a name give it as `domain` and set `externalDNS: true`";
        out.error(at, format!("`{text}` is not the address of a load balancer"), hint);
    }
    address
}
