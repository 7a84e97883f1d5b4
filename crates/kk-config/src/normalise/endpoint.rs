//! `spec.controlPlaneEndpoint`.

use super::syntax;
use crate::findings::{At, Findings};
use crate::spec::{ControlPlaneEndpoint, Host, Role};
use crate::v1alpha2::{self, InternalLoadbalancer};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

const OWN_LOAD_BALANCER: &str =
    "give the address of a load balancer of your own as `controlPlaneEndpoint.address`";

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

    refuse_internal(doc.internal_loadbalancer, at.key("internalLoadbalancer"), out);
    if !syntax::is_dns_name(&doc.domain) {
        out.error(
            at.key("domain"),
            format!("`{}` cannot be the name of the API", doc.domain),
            syntax::DNS_NAME,
        );
    }
    let given = doc.address.as_deref().and_then(|text| own_address(text, at.key("address"), out));
    let external_address = given.is_some_and(|address| !control_planes.contains(&address));
    let readable = doc.address.is_none() || given.is_some();
    let direct = readable && !external_address && !doc.external_dns;
    if external_address && hosts.iter().any(|host| host.name == doc.domain) {
        let message = format!("`{}` names a host already, with another address", doc.domain);
        out.error(at.key("domain"), message, "give the load balancer a name of its own");
    }
    if direct && control_planes.len() > 1 && doc.internal_loadbalancer.is_none() {
        let number = control_planes.len();
        let message =
            format!("{number} control planes without a load balancer: the first one's loss cuts off all");
        out.warning(at, message, OWN_LOAD_BALANCER);
    }
    if direct && doc.port != ControlPlaneEndpoint::API_SERVER_PORT {
        let message = format!("nothing listens on port {}: API servers listen on 6443", doc.port);
        out.error(at.key("port"), message, "use 6443, or give the address of a load balancer");
    }
    ControlPlaneEndpoint {
        domain: doc.domain,
        address: given.or_else(|| control_planes.first().copied().filter(|_| !doc.external_dns)),
        port: doc.port,
        external_dns: doc.external_dns,
        external_address,
    }
}

fn refuse_internal(kind: Option<InternalLoadbalancer>, at: At<'_>, out: &mut Findings<'_>) {
    let name = match kind {
        None => return,
        Some(InternalLoadbalancer::Haproxy) => "haproxy",
        Some(InternalLoadbalancer::KubeVip) => "kube-vip",
    };
    out.error(at, format!("the load balancer `{name}` cannot be installed yet"), OWN_LOAD_BALANCER);
}

fn own_address(text: &str, at: At<'_>, out: &mut Findings<'_>) -> Option<Ipv4Addr> {
    let address = text.parse().ok();
    if address.is_none() {
        let hint = "give an IPv4 address; for a name give it as `domain` and set `externalDNS: true`";
        out.error(at, format!("`{text}` is not the address of a load balancer"), hint);
    }
    address
}
