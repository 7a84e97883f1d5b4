//! `spec.network.calico`: checks of settings with which Calico would not start, or packets would be lost.

use super::syntax;
use crate::findings::{At, Findings};
use crate::spec::{Calico, Network};
use crate::v1alpha2;
use std::collections::BTreeMap;

/// Smallest and largest MTU. Hosts with IPv6 need 1280 (RFC 8200).
const MTU: std::ops::RangeInclusive<u32> = 576..=65535;
const SMALLEST_MTU_V6: u32 = 1280;
/// Prefix lengths of blocks that Calico accepts (`validateBlockSize` in its startup.go).
const BLOCKS: std::ops::RangeInclusive<u8> = 20..=32;
/// Methods by which a node finds its address: the whole text, or its start up to `=`.
const METHODS: [&str; 6] =
    ["first-found", "kubernetes-internal-ip", "can-reach", "interface", "skip-interface", "cidr"];

/// Checks the settings against each other and against the ranges of pods. `network` contains the ranges.
pub(super) fn check(
    doc: &v1alpha2::Calico,
    settings: &Calico,
    network: &Network,
    nodes: usize,
    at: At<'_>,
    out: &mut Findings<'_>,
) {
    if settings.uses_ipip() && settings.uses_vxlan() {
        out.error(
            at.key("vxlanMode"),
            "ipipMode and vxlanMode are both on: packets travel in one of them",
            "set `ipipMode: Never` or `vxlanMode: Never`",
        );
    }
    let smallest = if network.pods_v6.is_some() { SMALLEST_MTU_V6 } else { *MTU.start() };
    if doc.veth_mtu != 0 && !(smallest..=*MTU.end()).contains(&doc.veth_mtu) {
        let hint = format!("give a number from {smallest} to {}, or 0: Calico detects it", MTU.end());
        out.error(at.key("vethMTU"), format!("{} is not an MTU", doc.veth_mtu), hint);
    }
    check_method(doc.ip_auto_detection_method.as_deref(), at.key("ipAutoDetectionMethod"), out);
    if settings.default_pool {
        check_blocks(doc, network, nodes, at, out);
    }
    for (key, selector) in
        [("typha", &doc.typha.node_selector), ("controller", &doc.controller.node_selector)]
    {
        check_selector(selector, at.key(key).key("nodeSelector"), out);
    }
    if doc.controller.replicas.is_some_and(|replicas| replicas > 1) {
        out.warning(
            at.key("controller").key("replicas"),
            "Calico supports one pod of calico-kube-controllers",
            "remove it: Kubernetes replaces a lost pod",
        );
    }
}

fn check_method(method: Option<&str>, at: At<'_>, out: &mut Findings<'_>) {
    let Some(method) = method else { return };
    let (name, value) = method.split_once('=').map_or((method, None), |(name, value)| (name, Some(value)));
    let position = METHODS.iter().position(|known| *known == name);
    // The first two have no value.
    let fits = position.is_some_and(|position| (position < 2) == value.is_none());
    if method.contains("$(") {
        let hint = "remove it: by default a node uses its internal address";
        out.error(at, format!("`{method}` refers to a variable that does not exist"), hint);
    } else if !fits || value == Some("") {
        let hint = format!(
            "one of {}; can-reach, interface, skip-interface and cidr need a value: `interface=eth0`",
            METHODS.join(", ")
        );
        out.error(at, format!("`{method}` is not a way to find the address of a node"), hint);
    }
}

/// Each node gets blocks of the pool. A pool without a whole block cannot be created.
fn check_blocks(doc: &v1alpha2::Calico, network: &Network, nodes: usize, at: At<'_>, out: &mut Findings<'_>) {
    let size = doc.block_size.unwrap_or(Calico::BLOCK_SIZE);
    let own = at.key("blockSize");
    if !BLOCKS.contains(&size) {
        let hint = format!("give a prefix length from {} to {}", BLOCKS.start(), BLOCKS.end());
        return out.error(own, format!("Calico has no blocks of /{size}"), hint);
    }
    let pods = network.pods;
    match size.checked_sub(pods.prefix_len()) {
        None => {
            let message = format!("a block of /{size} does not fit into the pods' range {pods}");
            out.error(own, message, format!("set `blockSize` to {} or more", pods.prefix_len()));
        }
        Some(bits) if nodes > 1 << bits => {
            let message =
                format!("the pods' range {pods} has {} blocks of /{size} for {nodes} nodes", 1 << bits);
            out.warning(own, message, "use a larger `blockSize` or a larger range");
        }
        Some(_) => {}
    }
    if let Some(pods) = network.pods_v6.filter(|pods| pods.prefix_len() > Calico::BLOCK_SIZE_V6) {
        let message = format!("the pods' range {pods} is smaller than a block of Calico");
        out.error(own, message, format!("use a prefix of /{} or shorter", Calico::BLOCK_SIZE_V6));
    }
}

fn check_selector(selector: &BTreeMap<String, String>, at: At<'_>, out: &mut Findings<'_>) {
    for (key, value) in selector {
        if !syntax::is_label_key(key) || !syntax::is_label_value(value) {
            let hint = "write labels as `node-role.kubernetes.io/worker: \"\"`";
            out.error(at.name(key), format!("`{key}: {value}` is not a label of nodes"), hint);
        }
    }
}
