//! `spec.etcd`, and the hosts of its members.

use super::{Cluster, nodes::text, text::Text};

/// The directory of certificates of KubeKey and kk.
const CERTIFICATES: &str = "/etc/ssl/etcd/ssl/";
/// The default of the file.
const PORT: &str = "2379";

/// Who runs etcd.
#[derive(Debug)]
pub(super) enum Etcd {
    /// systemd, as KubeKey and kk set it up; with its members.
    Systemd(Vec<Member>),
    /// kubelets, from files of kubeadm on the control planes.
    Stacked,
    /// Another tool.
    External(Vec<String>),
}

#[derive(Debug)]
pub(super) struct Member {
    /// The name of its node. `None` for a host that is not a node.
    pub(super) node: Option<String>,
    pub(super) address: String,
    port: String,
}

impl Member {
    /// The name of its host in the file.
    pub(super) fn host(&self) -> String {
        self.node.clone().unwrap_or_else(|| format!("etcd-{}", self.address.replace(['.', ':'], "-")))
    }
}

impl Etcd {
    pub(super) fn of(config: &serde_json::Value, nodes: &[super::Node]) -> Self {
        let external = &config["etcd"]["external"];
        let endpoints: Vec<String> =
            external["endpoints"].as_array().into_iter().flatten().map(text).collect();
        if endpoints.is_empty() {
            return Self::Stacked;
        }
        if !external["caFile"].as_str().is_some_and(|file| file.starts_with(CERTIFICATES)) {
            return Self::External(endpoints);
        }
        let member = |endpoint: &String| {
            let (address, port) = authority(endpoint);
            let is_at = |node: &&super::Node| {
                node.name == address || node.addresses.iter().any(|own| own.to_string() == address)
            };
            let node = nodes.iter().find(is_at).map(|node| node.name.clone());
            Member { node, address: address.to_owned(), port: port.to_owned() }
        };
        Self::Systemd(endpoints.iter().map(member).collect())
    }

    /// Members whose hosts are not nodes.
    pub(super) fn other_hosts(&self) -> impl Iterator<Item = &Member> {
        let members = if let Self::Systemd(members) = self { members.as_slice() } else { &[] };
        members.iter().filter(|member| member.node.is_none())
    }
}

/// Address and port of an endpoint such as `https://10.0.0.1:2379`.
fn authority(endpoint: &str) -> (&str, &str) {
    let rest = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest).trim_end_matches('/');
    let (address, port) = rest.rsplit_once(':').unwrap_or((rest, PORT));
    (address.trim_matches(['[', ']']), port)
}

/// `spec.etcd`.
pub(super) fn write(cluster: &Cluster<'_>, out: &mut Text, depth: usize) {
    match &cluster.etcd {
        Etcd::Systemd(members) => {
            if let Some(member) = members.first().filter(|member| member.port != PORT) {
                out.optional(depth, format!("port: {}", member.port));
            }
        }
        Etcd::Stacked => out.note(
            depth,
            "etcd runs in pods of kubeadm on the control planes (type: kubeadm). kk does not support this yet: it only \
             runs etcd by systemd, and refuses these hosts.",
        ),
        Etcd::External(endpoints) => out.note(
            depth,
            &format!(
                "The cluster uses an etcd cluster of your own (type: external) at {}. kk does not support this yet: \
                 it only runs etcd by systemd, and refuses these hosts.",
                endpoints.join(", ")
            ),
        ),
    }
}
