//! Hosts that only a jump host reaches, and `network.plugin: none`: the cluster is created and left to a network of the user's
//! own; kk's own network, requested later, makes its nodes Ready.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::checks::{self, items, text};
use crate::context::Context;
use crate::host_state;
use crate::site::{Site, host_entry};

/// The lab's last host; it is no part of the cluster.
const BASTION: &str = "node3";
/// Where `kk` runs.
const CONTROL: &str = "172.30.0.1";

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let lab = Site::fresh(ctx, &ctx.dir.join("site"), 3, None)?;
    let flannel = lab.variant("behind", put_behind)?;
    let flannel =
        Site { hosts: lab.hosts.iter().filter(|host| *host != BASTION).cloned().collect(), ..flannel };
    for host in &flannel.hosts {
        ctx.host(host, &format!("iptables -A INPUT -s {CONTROL} -p tcp --dport 22 -j REJECT"))?;
    }
    let direct = Site { hosts: flannel.hosts.clone(), ..lab.variant("direct", without_bastion)? };
    ctx.kk(&direct, "create", &[])?.expect_code(4)?.expect_said(&["node1", "node2", "refused"])?;
    let before = host_state::of_all(ctx, &flannel.hosts)?;

    let none = flannel.variant("none", |cluster| cluster["spec"]["network"]["plugin"] = json!("none"))?;
    ctx.kk_ok(&none, "create", &[])?;
    nodes_wait_for_a_network(ctx, &none)?;
    ctx.kk_ok(&flannel, "create", &[]).context("flannel on the same cluster")?;
    checks::cluster_is_complete(ctx, &flannel)?;
    ctx.kk_ok(&flannel, "delete", &["--all"])?;
    host_state::expect_restored(ctx, &before)
}

fn put_behind(cluster: &mut Value) {
    let entry = host_entry(cluster, BASTION);
    let bastion = json!({
        "address": entry["address"], "user": entry["user"], "privateKeyPath": entry["privateKeyPath"],
    });
    without_bastion(cluster);
    cluster["spec"]["bastion"] = bastion;
}

fn without_bastion(cluster: &mut Value) {
    let spec = &mut cluster["spec"];
    if let Some(hosts) = spec["hosts"].as_array_mut() {
        hosts.retain(|host| host["name"] != BASTION);
    }
    spec["roleGroups"] = json!({"etcd": ["node1"], "control-plane": ["node1"], "worker": ["node2"]});
}

/// All joined, none Ready, and nothing of a network that was not requested.
fn nodes_wait_for_a_network(ctx: &Context<'_>, site: &Site) -> Result<()> {
    let nodes = ctx.kubectl_json(site, "get nodes")?;
    let joined: BTreeSet<String> = items(&nodes).map(|node| text(&node["metadata"]["name"])).collect();
    ensure!(joined == site.hosts.iter().cloned().collect(), "these nodes joined: {joined:?}");
    ensure!(checks::nodes_are_ready(ctx, site).is_err(), "nodes are Ready without a network plugin");
    let sets = ctx.kubectl(site, "get daemonsets -A -o name")?;
    ensure!(!sets.contains("flannel"), "there is a network although none was asked for:\n{sets}");
    for host in &site.hosts {
        let files = ctx.host(host, "ls /etc/cni/net.d 2>/dev/null || true")?;
        ensure!(files.trim().is_empty(), "{host} has a CNI configuration: {files}");
    }
    Ok(())
}
