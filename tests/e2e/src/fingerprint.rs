//! The fingerprint of a cluster: everything that two clusters made from the same file have in common, however often `kk` was
//! killed on the way. It covers nodes, workloads, etcd's members, running units and every path on the hosts, with contents unless
//! they are random.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::Value;

use crate::checks::{self, items, text};
use crate::context::Context;
use crate::host_state;
use crate::site::Site;

/// Paths that depend on the moment: data of running programs, and files that timers write.
const DATA: &[&str] = &[
    "/var/lib/containerd/",
    "/var/lib/kubelet/",
    "/var/lib/etcd/",
    "/var/lib/cni/",
    "/var/backups/kube_etcd",
];

/// Files whose contents hold keys, certificates, times, or an order of events.
const RANDOM: &[&str] = &[
    "/etc/kubernetes/",
    "/etc/ssl/etcd/",
    "/etc/machine-id",
    "/etc/ssh/",
    "/root/.kube/",
    "/etc/shadow",
    "/etc/kubekey/",
];

/// Kinds of entries of a host's state that are the same in every cluster. Addresses, rules and mounts contain the names and
/// numbers of pods.
const KINDS: &[&str] =
    &["file ", "content ", "user ", "group ", "unit-file ", "sysctl net.ipv4.ip_forward", "hostname"];

/// Looks at the whole cluster.
pub(crate) fn of(ctx: &Context<'_>, site: &Site) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for (host, state) in host_state::of_all(ctx, &site.hosts)? {
        let entries = state.0.into_iter().filter(|(key, _)| is_common(key));
        found.extend(entries.map(|(key, value)| (format!("{host} {key}"), value)));
    }
    for host in &site.hosts {
        // The record of what a delete restores, whichever run changed it. The identity behind the cluster's name is random.
        let record = "sed -E 's/^(cluster\t[^\t]*)\t.*/\\1/' /etc/kubekey/owned | sort";
        found.insert(format!("{host} owned"), ctx.host(host, record)?);
    }
    nodes(ctx, site, &mut found)?;
    for kind in ["deployments", "daemonsets"] {
        for object in items(&ctx.kubectl_json(site, &format!("get {kind} -A"))?) {
            found.insert(format!("{kind} {}", text(&object["metadata"]["name"])), summary(&object["spec"]));
        }
    }
    for (unit, id) in checks::invocations(ctx, site)? {
        found.insert(format!("runs {unit}"), (!id.is_empty()).to_string());
    }
    // The ids are random; names and number are not.
    let members = checks::etcd_identity(ctx, site)?;
    let names: Vec<&str> = members.split(' ').filter(|word| word.starts_with("node")).collect();
    found.insert("etcd members".into(), names.join(" "));
    Ok(found)
}

fn nodes(ctx: &Context<'_>, site: &Site, found: &mut BTreeMap<String, String>) -> Result<()> {
    for node in items(&ctx.kubectl_json(site, "get nodes")?) {
        let name = text(&node["metadata"]["name"]);
        found.insert(format!("node {name} labels"), node["metadata"]["labels"].to_string());
        found.insert(format!("node {name} taints"), node["spec"]["taints"].to_string());
        found.insert(format!("node {name} version"), text(&node["status"]["nodeInfo"]["kubeletVersion"]));
        found.insert(
            format!("node {name} allocatable pods"),
            node["status"]["allocatable"]["pods"].to_string(),
        );
    }
    Ok(())
}

/// Replicas and the pods' specification.
fn summary(spec: &Value) -> String {
    format!("{} {}", spec["replicas"], spec["template"]["spec"])
}

fn is_common(key: &str) -> bool {
    let Some((kind, path)) = key.split_once(' ') else { return KINDS.contains(&key) };
    let begins = |list: &[&str]| list.iter().any(|directory| path.starts_with(directory));
    KINDS.iter().any(|beginning| key.starts_with(beginning))
        && !begins(DATA)
        && !(kind == "content" && begins(RANDOM))
}

/// The differences, a line for each entry.
pub(crate) fn differences(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> Vec<String> {
    host_state::HostState(one.clone()).differences(&host_state::HostState(other.clone()))
}

#[cfg(test)]
mod tests {
    use super::is_common;

    #[test]
    fn what_chance_makes_is_left_out() {
        for (key, common) in [
            ("file /etc/kubernetes/pki/ca.key", true),
            ("content /etc/kubernetes/pki/ca.key", false),
            ("content /etc/containerd/config.toml", true),
            ("file /var/lib/kubelet/pods/1", false),
            ("iptables -A KUBE-SVC-X", false),
            ("user root", true),
            ("hostname", true),
        ] {
            assert_eq!(is_common(key), common, "{key}");
        }
    }
}
