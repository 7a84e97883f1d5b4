//! `spec.network`: checks that the address ranges fit each other, the hosts and the size of the cluster.

use super::calico;
use crate::NetworkPlugin;
use crate::findings::{At, Findings};
use crate::spec::{ControlPlaneEndpoint, Host, Kubernetes, Network};
use crate::v1alpha2::{self, OWN_NETWORK, PluginName};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::IpAddr;

/// kube-apiserver accepts at most 2^20 Service addresses.
const SERVICE_BITS: u8 = 20;
/// A smaller range has no space for the Services of the API and of DNS.
const SMALLEST_SERVICE_PREFIX_V4: u8 = 28;
/// kube-controller-manager refuses more than 2^16 node ranges.
const NODE_RANGE_BITS: u8 = 16;

/// Parses the ranges and makes the checks that need no hosts.
pub(super) fn network(
    doc: &v1alpha2::Network,
    kubernetes: &Kubernetes,
    hosts: &[Host],
    spec: At<'_>,
    out: &mut Findings<'_>,
) -> Network {
    let at = spec.key("network");
    let defaults = v1alpha2::Network::default();
    let (pods, pods_v6) = ranges(&doc.kube_pods_cidr, &defaults.kube_pods_cidr, at.key("kubePodsCIDR"), out);
    let (services, services_v6) =
        ranges(&doc.kube_service_cidr, &defaults.kube_service_cidr, at.key("kubeServiceCIDR"), out);
    check_families(pods_v6, services_v6, hosts, spec, out);
    check_services(services, services_v6, at.key("kubeServiceCIDR"), out);
    if at.is_somewhere() && !at.has("plugin") && !out.is_unread(at) {
        let message = "no network plugin is set: kk installs flannel, which ignores NetworkPolicies";
        let hint = "write `plugin: flannel`; KubeKey's default was calico, which enforces them";
        out.warning(at, message, hint);
    }
    let nodes = hosts.iter().filter(|host| host.is_node()).count();
    let plugin = plugin(doc, kubernetes, nodes, at, out);
    let network = Network {
        plugin,
        cilium_values: doc.cilium.values.clone(),
        flannel_direct_routing: direct_routing(&doc.flannel, at.key("flannel"), out),
        pods,
        pods_v6,
        services,
        services_v6,
    };
    if let NetworkPlugin::Calico(settings) = &network.plugin {
        calico::check(&doc.calico, settings, &network, nodes, at.key("calico"), out);
    } else if at.key("calico").is_value() {
        let message = format!("the settings of Calico have no effect: the network plugin is {}", doc.plugin);
        out.warning(at.key("calico"), message, "remove them, or set `plugin: calico`");
    }
    let values = at.key("cilium").key("values");
    if doc.plugin != PluginName::Cilium && values.is_value() {
        let message = format!("the values of Cilium have no effect: the network plugin is {}", doc.plugin);
        out.warning(values, message, "remove them, or set `plugin: cilium`");
    }
    check_node_ranges(&network, kubernetes, hosts, spec, out);
    network
}

fn plugin(
    doc: &v1alpha2::Network,
    kubernetes: &Kubernetes,
    nodes: usize,
    at: At<'_>,
    out: &mut Findings<'_>,
) -> NetworkPlugin {
    let name = doc.plugin;
    let Some(plugin) = doc.chosen(nodes) else {
        let installed = PluginName::INSTALLED.map(|name| format!("`{name}`")).join(", ");
        let hint = format!("use {installed}; {OWN_NETWORK}");
        out.error(at.key("plugin"), format!("the network plugin `{name}` cannot be installed yet"), hint);
        return NetworkPlugin::None;
    };
    if kubernetes.disable_kube_proxy && !plugin.may_replace_kube_proxy() {
        out.warning(
            at.key("plugin"),
            format!("without kube-proxy nothing routes Services: {name} does not"),
            "keep kube-proxy, or use `cilium`, or `none` and a plugin that replaces it",
        );
    }
    plugin
}

fn direct_routing(doc: &v1alpha2::Flannel, at: At<'_>, out: &mut Findings<'_>) -> bool {
    let wanted = doc.direct_routing.unwrap_or(false);
    if wanted && doc.backend_mode == v1alpha2::FlannelBackend::HostGw {
        let message = "without effect: directRouting, because the backend host-gw only has plain routes";
        out.warning(at.name("directRouting"), message, "remove it");
    }
    wanted
}

/// Parses `v4` or `v4,v6`; bits after the prefix are cleared.
fn ranges(text: &str, default: &str, at: At<'_>, out: &mut Findings<'_>) -> (Ipv4Net, Option<Ipv6Net>) {
    let mut parts = text.splitn(2, ',').map(str::trim);
    let v4 = parts.next().and_then(|part| part.parse::<Ipv4Net>().ok());
    let v6 = parts.next().map(str::parse::<Ipv6Net>);
    match (v4, v6) {
        (Some(v4), None) => (v4.trunc(), None),
        (Some(v4), Some(Ok(v6))) => (v4.trunc(), Some(v6.trunc())),
        _ => {
            let hint = format!(
                "give an IPv4 range such as {default}, or an IPv4 and an IPv6 range with a comma between"
            );
            out.error(at, format!("`{text}` is not an address range"), hint);
            (default.parse().expect("the default is a range"), None)
        }
    }
}

/// Checks that with two address families there are ranges for both pods and Services, and addresses on every node.
fn check_families(
    pods: Option<Ipv6Net>,
    services: Option<Ipv6Net>,
    hosts: &[Host],
    spec: At<'_>,
    out: &mut Findings<'_>,
) {
    let missing = match (pods, services) {
        (None, None) => return,
        (Some(_), None) => Some("kubeServiceCIDR"),
        (None, Some(_)) => Some("kubePodsCIDR"),
        (Some(_), Some(_)) => None,
    };
    if let Some(key) = missing {
        let hint = "give an IPv6 range for both pods and Services, or for none";
        out.error(
            spec.key("network").key(key),
            format!("`{key}` has no IPv6 range, but the other one has"),
            hint,
        );
    }
    let lacking: Vec<&str> = hosts
        .iter()
        .filter(|host| host.is_node() && host.internal_address_v6.is_none())
        .map(|host| host.name.as_str())
        .collect();
    if !lacking.is_empty() {
        let message = format!("two address families, but no IPv6 address for {}", lacking.join(", "));
        out.error(spec.key("network"), message, "give each of them `internalAddress: v4,v6`");
    }
}

fn check_services(v4: Ipv4Net, v6: Option<Ipv6Net>, at: At<'_>, out: &mut Findings<'_>) {
    let bits = |range: IpNet| range.max_prefix_len() - range.prefix_len();
    for range in
        std::iter::once(IpNet::V4(v4)).chain(v6.map(IpNet::V6)).filter(|range| bits(*range) > SERVICE_BITS)
    {
        let hint = format!("use a prefix of /{} or longer", range.max_prefix_len() - SERVICE_BITS);
        out.error(at, format!("{range} is too large for Services"), hint);
    }
    if v4.prefix_len() > SMALLEST_SERVICE_PREFIX_V4 {
        let hint = format!("use a prefix of /{SMALLEST_SERVICE_PREFIX_V4} or shorter");
        out.error(at, format!("{v4} is too small for Services"), hint);
    }
}

/// Checks that the pods' range is large enough: each node takes a range of `nodeCidrMaskSize` from it.
fn check_node_ranges(
    network: &Network,
    kubernetes: &Kubernetes,
    hosts: &[Host],
    spec: At<'_>,
    out: &mut Findings<'_>,
) {
    let families = [
        Some((IpNet::V4(network.pods), kubernetes.node_cidr_mask_size, "nodeCidrMaskSize")),
        network
            .pods_v6
            .map(|range| (IpNet::V6(range), kubernetes.node_cidr_mask_size_ipv6, "nodeCidrMaskSizeIPv6")),
    ];
    let nodes = hosts.iter().filter(|host| host.is_node()).count();
    for (pods, mask, key) in families.into_iter().flatten() {
        let at = spec.key("kubernetes").key(key);
        let Some(bits) = mask.checked_sub(pods.prefix_len()) else {
            let hint = format!("use a `{key}` of {} or more", pods.prefix_len());
            out.error(
                at,
                format!("a node's range of /{mask} does not fit into the pods' range {pods}"),
                hint,
            );
            continue;
        };
        if bits > NODE_RANGE_BITS {
            let hint = format!("use a `{key}` of {} or less", pods.prefix_len() + NODE_RANGE_BITS);
            out.error(at, format!("the pods' range {pods} has more than 65536 node ranges of /{mask}"), hint);
        } else if nodes > 1 << bits {
            let message = format!(
                "the pods' range {pods} has {} node ranges of /{mask}, but there are {nodes} nodes",
                1u32 << bits
            );
            out.error(at, message, "use a larger range for pods or a larger number here");
        }
    }
    if matches!(network.plugin, NetworkPlugin::Calico(_)) {
        // A node gets as many blocks of Calico's pools as its pods need.
        return;
    }
    let room = (1u64 << (32 - u64::from(kubernetes.node_cidr_mask_size.min(32)))).saturating_sub(2);
    if room < u64::from(kubernetes.max_pods) {
        let message = format!(
            "a node's range of /{} has {room} addresses, but maxPods is {}",
            kubernetes.node_cidr_mask_size, kubernetes.max_pods
        );
        out.warning(spec.key("kubernetes").key("maxPods"), message, "lower maxPods or nodeCidrMaskSize");
    }
}

/// Checks that ranges overlap neither each other nor any address outside of the cluster's ranges.
pub(super) fn check_addresses(
    network: &Network,
    hosts: &[Host],
    endpoint: &ControlPlaneEndpoint,
    spec: At<'_>,
    out: &mut Findings<'_>,
) {
    let at = spec.key("network");
    let pods = std::iter::once(IpNet::V4(network.pods)).chain(network.pods_v6.map(IpNet::V6));
    let services = std::iter::once(IpNet::V4(network.services)).chain(network.services_v6.map(IpNet::V6));
    let ranges: Vec<(IpNet, &str, &str)> = pods
        .map(|range| (range, "pods", "kubePodsCIDR"))
        .chain(services.map(|range| (range, "Services", "kubeServiceCIDR")))
        .collect();
    for (one, ..) in ranges.iter().filter(|(_, what, _)| *what == "pods") {
        for (two, ..) in ranges.iter().filter(|(other, what, _)| *what == "Services" && overlap(one, other)) {
            let message = format!("the ranges of pods ({one}) and Services ({two}) overlap");
            out.error(at.key("kubeServiceCIDR"), message, "give two ranges with no common address");
        }
    }
    let mut outside: Vec<(String, IpAddr)> = Vec::new();
    for host in hosts {
        let addresses = [
            host.address.parse().ok(),
            Some(host.internal_address.into()),
            host.internal_address_v6.map(Into::into),
        ];
        for address in addresses.into_iter().flatten() {
            let entry = (format!("host `{}`", host.name), address);
            if !outside.contains(&entry) {
                outside.push(entry);
            }
        }
    }
    if let Some(address) = endpoint.address.filter(|_| endpoint.external_address) {
        outside.push(("the load balancer".to_owned(), address.into()));
    }
    for (range, what, key) in &ranges {
        for (who, address) in outside.iter().filter(|(_, address)| range.contains(address)) {
            let message = format!("the range of {what} ({range}) contains the address {address} of {who}");
            out.error(at.key(key), message, "give a range that nothing else uses");
        }
    }
}

fn overlap(one: &IpNet, two: &IpNet) -> bool {
    one.contains(two) || two.contains(one)
}
