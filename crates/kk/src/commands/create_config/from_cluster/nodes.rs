//! The nodes of a cluster, and the members of its etcd.

use std::net::IpAddr;

use kk_config::Arch;
use serde_json::Value;

use super::answers::Answers;
use crate::commands::kubectl::items;
use crate::error::Error;

const ROLE: &str = "node-role.kubernetes.io/";

/// A node.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) name: String,
    /// `v4` or `v4,v6`.
    pub(super) addresses: Vec<IpAddr>,
    pub(super) arch: Option<Arch>,
    pub(super) labels: Vec<(String, String)>,
    pub(super) taints: Vec<String>,
    pub(super) is_control_plane: bool,
    pub(super) is_worker: bool,
    pub(super) kubelet: String,
    /// Such as `containerd://2.4.2`.
    pub(super) runtime: String,
}

impl Node {
    /// # Errors
    /// The node has no IPv4 address.
    fn of(node: &Value) -> Result<Self, Error> {
        let name = text(&node["metadata"]["name"]);
        let info = |field: &str| text(&node["status"]["nodeInfo"][field]);
        let internal: Vec<IpAddr> = node["status"]["addresses"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|address| address["type"] == "InternalIP")
            .filter_map(|address| address["address"].as_str()?.parse().ok())
            .collect();
        let Some(v4) = internal.iter().find(|address| address.is_ipv4()) else {
            let message = format!("the node {name} has no internal IPv4 address");
            return Err(Error::config(
                message,
                Some("kk supports clusters of IPv4, and of IPv4 and IPv6".into()),
            ));
        };
        let addresses = [Some(v4), internal.iter().find(|address| address.is_ipv6())];
        let labels = node["metadata"]["labels"].as_object();
        let has = |label: &str| labels.is_some_and(|labels| labels.contains_key(&format!("{ROLE}{label}")));
        let is_control_plane = has("control-plane") || has("master");
        let taints: Vec<String> =
            node["spec"]["taints"].as_array().into_iter().flatten().map(taint).collect();
        let own = ["control-plane", "master"].map(|role| format!("{ROLE}{role}:NoSchedule"));
        let is_worker = has("worker") || !is_control_plane || !own.iter().any(|own| taints.contains(own));
        // kk adds the taint of control planes only where they are not workers.
        let is_of_file = |taint: &String| !is_automatic(taint) && (is_worker || !own.contains(taint));
        Ok(Self {
            addresses: addresses.into_iter().flatten().copied().collect(),
            arch: Arch::from_name(&info("architecture")),
            labels: labels
                .into_iter()
                .flatten()
                .filter(|(key, _)| !is_automatic(key) && !is_role(key))
                .map(|(key, value)| (key.clone(), text(value)))
                .collect(),
            taints: taints.into_iter().filter(is_of_file).collect(),
            is_control_plane,
            is_worker,
            kubelet: info("kubeletVersion"),
            runtime: info("containerRuntimeVersion"),
            name,
        })
    }

    pub(super) fn v4(&self) -> IpAddr {
        self.addresses[0]
    }

    pub(super) fn internal_address(&self) -> String {
        self.addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }
}

/// All nodes. Control planes are in the order of their names in the API server's certificate, because kk runs `kubeadm init` on
/// the first one.
///
/// # Errors
/// No node exists, or a node has no IPv4 address.
pub(super) fn nodes(answers: &Answers, names: &[&str]) -> Result<Vec<Node>, Error> {
    let mut nodes = items(&answers.nodes).map(Node::of).collect::<Result<Vec<_>, _>>()?;
    nodes.sort_by_key(|node| {
        let position = names.iter().position(|name| *name == node.name).unwrap_or(usize::MAX);
        (!node.is_control_plane, if node.is_control_plane { position } else { 0 })
    });
    if !nodes.iter().any(|node| node.is_control_plane) {
        let message = format!("no node of the cluster has the label {ROLE}control-plane");
        let hint = "label the nodes that run the control plane: kubectl label node NAME node-role.kubernetes.io/control-plane=";
        return Err(Error::config(message, Some(hint.to_owned())));
    }
    Ok(nodes)
}

/// Prefixes of labels and taints that kubelets, controllers and network plugins set.
const AUTOMATIC: [&str; 6] = [
    "beta.kubernetes.io/",
    "feature.node.kubernetes.io/",
    "kubernetes.io/",
    "node.cilium.io/",
    "node.kubernetes.io/",
    "ovn.kubernetes.io/",
];

fn is_automatic(key: &str) -> bool {
    AUTOMATIC.iter().any(|prefix| key.starts_with(prefix))
}

fn is_role(key: &str) -> bool {
    key.strip_prefix(ROLE).is_some_and(|role| ["control-plane", "master", "worker"].contains(&role))
}

fn taint(taint: &Value) -> String {
    let value = text(&taint["value"]);
    let separator = if value.is_empty() { "" } else { "=" };
    format!("{}{separator}{value}:{}", text(&taint["key"]), text(&taint["effect"]))
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
