//! `kk create config --from-cluster`: writes a Cluster file from the API of a running cluster of kubeadm, KubeKey or kk. Values
//! that are the defaults of the file stay out, and comments name what is not stored in the cluster.

mod answers;
mod endpoint;
mod etcd;
mod kubernetes;
mod network;
mod nodes;
mod settings;
#[cfg(test)]
mod tests;
mod text;

use std::{
    env,
    net::Ipv4Addr,
    path::{Path, PathBuf},
};

use kk_config::{KubeVersion, v1alpha2};
use serde_json::Value;

use self::{
    answers::Answers,
    endpoint::{Balancer, Endpoint},
    etcd::Etcd,
    nodes::Node,
    text::{Text, scalar},
};
use super::without_places;
use crate::commands::kubectl;
use crate::error::Error;
use crate::printer::Printer;

/// The text of the file.
///
/// # Errors
/// The cluster does not answer, or kk cannot describe it.
pub(super) async fn text(name: &str, kubeconfig: Option<&Path>, printer: &Printer) -> Result<String, Error> {
    for file in kubeconfig.map_or_else(default_kubeconfigs, |file| vec![file.to_owned()]) {
        if let Some(warning) = kubectl::warning(&file) {
            printer.warning(warning);
        }
    }
    write(name, &Answers::ask(kubeconfig).await?)
}

/// The files that kubectl reads without a flag.
fn default_kubeconfigs() -> Vec<PathBuf> {
    match env::var_os("KUBECONFIG").filter(|files| !files.is_empty()) {
        Some(files) => env::split_paths(&files).collect(),
        None => env::home_dir().map(|home| home.join(".kube/config")).into_iter().collect(),
    }
}

/// A cluster as the file describes it.
struct Cluster<'a> {
    answers: &'a Answers,
    /// kubeadm's `ClusterConfiguration`.
    config: Value,
    version: KubeVersion,
    nodes: Vec<Node>,
    endpoint: Endpoint,
    etcd: Etcd,
}

/// Further names and addresses in the certificates of API servers.
fn names(config: &Value) -> impl Iterator<Item = &str> {
    config["apiServer"]["certSANs"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

impl<'a> Cluster<'a> {
    fn of(answers: &'a Answers) -> Result<Self, Error> {
        let (config, version) = answers.kubeadm()?;
        let nodes = nodes::nodes(answers, &names(&config).collect::<Vec<_>>())?;
        let [haproxy, kube_vip] = ["haproxy-", "kube-vip-"].map(|prefix| answers.static_pod(prefix));
        let endpoint = Endpoint::of(&config, haproxy, kube_vip);
        let etcd = Etcd::of(&config, &nodes);
        Ok(Self { answers, config, version, nodes, endpoint, etcd })
    }

    fn control_planes(&self) -> Vec<&Node> {
        self.nodes.iter().filter(|node| node.is_control_plane).collect()
    }

    fn dns_domain(&self) -> &str {
        self.config["networking"]["dnsDomain"].as_str().unwrap_or("cluster.local")
    }

    fn services(&self) -> Option<Ipv4Addr> {
        let ranges = self.config["networking"]["serviceSubnet"].as_str()?;
        ranges.split(',').find_map(|range| range.trim().split('/').next()?.parse().ok())
    }

    /// The address of the DNS Service that kk configures.
    fn dns_address(&self) -> Option<Ipv4Addr> {
        Some(Ipv4Addr::from(u32::from(self.services()?).checked_add(3)?))
    }

    fn is_dual_stack(&self) -> bool {
        self.config["networking"]["podSubnet"].as_str().is_some_and(|ranges| ranges.contains(','))
    }

    /// The address that kube-vip gives to one of the control planes.
    fn virtual_address(&self) -> Option<Ipv4Addr> {
        matches!(self.endpoint.balancer, Some(Balancer::KubeVip(..))).then_some(self.endpoint.address)?
    }

    /// The SSH address of a control plane. kk and KubeKey write it into certificates, before the internal address.
    fn ssh_address(&self, node: &Node) -> Option<&str> {
        let cluster = self.config["clusterName"].as_str().unwrap_or_default();
        let full = format!("{}.{cluster}", node.name);
        let mut names = names(&self.config).skip_while(|name| *name != node.name).skip(1);
        if names.next() != Some(&*full) {
            return None;
        }
        let (address, internal) = (names.next()?, names.next()?);
        (internal == node.v4().to_string()).then_some(address)
    }

    /// The names in certificates that no other setting adds.
    fn extra_names(&self) -> Vec<&str> {
        let cluster = self.config["clusterName"].as_str().unwrap_or_default();
        let mut known: Vec<String> =
            ["localhost", "127.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
                .map(str::to_owned)
                .to_vec();
        known.push(format!("kubernetes.default.svc.{}", self.dns_domain()));
        known.push(self.endpoint.domain.clone());
        known.extend(self.endpoint.address.map(|address| address.to_string()));
        known.extend(
            self.services().map(|first| Ipv4Addr::from(u32::from(first).wrapping_add(1)).to_string()),
        );
        // KubeKey, which repeats kubeadm's own names, also adds workers.
        let has_all = names(&self.config).any(|name| name == "kubernetes.default");
        for node in self.nodes.iter().filter(|node| node.is_control_plane || has_all) {
            known.extend([node.name.clone(), format!("{}.{cluster}", node.name)]);
            known.extend(node.addresses.iter().map(ToString::to_string));
            known.extend(self.ssh_address(node).map(str::to_owned));
        }
        names(&self.config).filter(|name| !known.iter().any(|known| known == name)).collect()
    }
}

/// Writes the file from what the cluster answered.
fn write(name: &str, answers: &Answers) -> Result<String, Error> {
    let cluster = Cluster::of(answers)?;
    let mut out = Text::default();
    out.note(
        0,
        &format!(
            "A running cluster of Kubernetes {}, written by `kk create config --from-cluster`.",
            cluster.version
        ),
    );
    out.line(0, "#");
    out.note(
        0,
        "The cluster does not store how its hosts are reached by SSH: change the lines with `fill in`. Settings that \
         are missing here have their defaults; `kk config schema` prints all fields. `kk create cluster -f FILE \
         --dry-run` shows the differences between this file and the hosts, and changes nothing.",
    );
    out.line(0, format!("apiVersion: {}", v1alpha2::API_VERSION));
    out.line(0, "kind: Cluster");
    out.line(0, "metadata:");
    out.note(
        1,
        "Not stored in the cluster. If there is a directory kubekey/<name> of it, use the same name.",
    );
    out.line(1, format!("name: {}", scalar(name)));
    out.line(0, "spec:");
    out.section(1, "hosts", |out, depth| hosts(&cluster, out, depth));
    out.section(1, "roleGroups", |out, depth| role_groups(&cluster, out, depth));
    out.section(1, "controlPlaneEndpoint", |out, depth| endpoint::write(&cluster, out, depth));
    out.section(1, "etcd", |out, depth| etcd::write(&cluster, out, depth));
    out.section(1, "kubernetes", |out, depth| kubernetes::kubernetes(&cluster, out, depth));
    out.section(1, "network", |out, depth| network::write(&cluster, out, depth));
    out.section(1, "components", |out, depth| kubernetes::components(&cluster, out, depth));
    let repository = cluster.config["imageRepository"].as_str().unwrap_or(UPSTREAM);
    if repository != UPSTREAM {
        let note = format!(
            "Images come from {repository}: fill in `registry.privateRegistry`, or `registry.remoteMirrors`, and logins."
        );
        out.note(1, &note);
    }
    out.note(
        1,
        "Not read: the sections system, dns, registry, storage, addons, download and kubesphere, most settings of etcd, \
         and flags of kubelets.",
    );
    out.finish().map_err(|errors| Error::Config(without_places(errors)))
}

/// kubeadm's default registry.
const UPSTREAM: &str = "registry.k8s.io";

fn hosts(cluster: &Cluster<'_>, out: &mut Text, depth: usize) {
    out.note(depth, "address: where SSH connects to. internalAddress: how the hosts reach each other.");
    let access = |out: &mut Text, address: &str, is_known: bool| {
        let fill = if is_known { "" } else { "fill in" };
        commented(out, depth + 1, &format!("address: {}", scalar(address)), fill);
    };
    let login = |out: &mut Text| {
        commented(out, depth + 1, "user: root", "fill in; other users than root need sudo");
        let key = "fill in, or `password: …`; with neither: SSH agent and default keys";
        commented(out, depth + 1, "privateKeyPath: ~/.ssh/id_ed25519", key);
    };
    for node in &cluster.nodes {
        out.line(depth, format!("- name: {}", scalar(&node.name)));
        let internal = node.v4().to_string();
        let known = cluster.ssh_address(node);
        access(out, known.unwrap_or(&internal), known.is_some());
        out.line(depth + 1, format!("internalAddress: {}", scalar(&node.internal_address())));
        login(out);
        match node.arch {
            Some(arch) => out.line(depth + 1, format!("arch: {arch}")),
            None => out.note(depth + 1, "Its architecture is none that kk supports."),
        }
        out.section(depth + 1, "labels", |out, depth| {
            for (key, value) in &node.labels {
                out.optional(depth, format!("{}: {}", scalar(key), scalar(value)));
            }
        });
        out.list(depth + 1, "taints", node.taints.iter().map(String::as_str));
    }
    for member in cluster.etcd.other_hosts() {
        out.note(
            depth,
            "This member of etcd is not a node: write its host name here and in roleGroups.etcd.",
        );
        out.line(depth, format!("- name: {}", scalar(&member.host())));
        access(out, &member.address, false);
        out.line(depth + 1, format!("internalAddress: {}", scalar(&member.address)));
        login(out);
    }
}

/// Where comments after a line begin.
const COLUMN: usize = 40;

fn commented(out: &mut Text, depth: usize, line: &str, comment: &str) {
    if comment.is_empty() {
        return out.line(depth, line);
    }
    let width = (COLUMN - depth * 2).max(line.chars().count() + 1);
    out.line(depth, format!("{line:width$}# {comment}"));
}

fn role_groups(cluster: &Cluster<'_>, out: &mut Text, depth: usize) {
    let group = |names: Vec<String>| {
        format!("[{}]", names.iter().map(|name| scalar(name)).collect::<Vec<_>>().join(", "))
    };
    let named = |is_in: fn(&Node) -> bool| -> Vec<String> {
        cluster.nodes.iter().filter(|node| is_in(node)).map(|node| node.name.clone()).collect()
    };
    let control_planes = named(|node| node.is_control_plane);
    let members = match &cluster.etcd {
        Etcd::Systemd(members) => members.iter().map(etcd::Member::host).collect(),
        Etcd::Stacked => control_planes.clone(),
        Etcd::External(_) => {
            out.note(depth, "The members of etcd are no hosts of this file; the group must not be empty.");
            control_planes.clone()
        }
    };
    out.line(depth, format!("etcd: {}", group(members)));
    out.line(depth, format!("control-plane: {}", group(control_planes)));
    let workers = named(|node| node.is_worker);
    if !workers.is_empty() {
        out.line(depth, format!("worker: {}", group(workers)));
    }
}
