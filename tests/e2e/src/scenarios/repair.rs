//! Four things are broken or changed on a running cluster; create repairs exactly these, on exactly these hosts,
//! and restarts nothing that need not.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kk_test_common::events::Changed;
use serde_json::json;

use crate::checks::{self, items, text};
use crate::cluster;
use crate::context::Context;
use crate::host_state::expect_none;
use crate::site::Site;

const MAX_PODS: u64 = 123;
/// Of node1, the control plane.
const CNI_PLUGIN: &str = "/opt/cni/bin/loopback";
/// Of node2.
const CONTAINERD: &str = "/etc/containerd/config.toml";
/// node3's kubelet is stopped.
const STOPPED: &str = "node3";

/// Hosts on which a module may change something; no other module may change anything.
const EXPECTED: &[(&str, &[&str])] = &[
    ("containerd", &["node1", "node2"]),
    ("control-plane", &["node1"]),
    ("nodes", &["node1", "node2", "node3"]),
    // After changes, whatever the probe saw before them: every node queries the pods of others.
    ("verify", &["node1", "node2", "node3"]),
];

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let site = cluster::ensure(ctx)?.site;
    repair(ctx, &site)?;
    // The shared cluster is restored to its own file.
    ctx.kk_ok(&site, "create", &[]).context("back to the file without maxPods")?;
    checks::nodes_are_ready(ctx, &site)
}

fn repair(ctx: &Context<'_>, site: &Site) -> Result<()> {
    let sum = |host: &str, path: &str| ctx.host(host, &format!("sha256sum {path}"));
    let (plugin, config) = (sum("node1", CNI_PLUGIN)?, sum("node2", CONTAINERD)?);
    let before = (checks::invocations(ctx, site)?, checks::restarts(ctx, site)?);
    ctx.host("node1", &format!("rm {CNI_PLUGIN}"))?;
    ctx.host("node2", &format!("printf '\\n# edited by hand\\n' >>{CONTAINERD}"))?;
    ctx.host(STOPPED, "systemctl stop kubelet")?;
    let changed =
        site.variant("max-pods", |cluster| cluster["spec"]["kubernetes"]["maxPods"] = json!(MAX_PODS))?;

    let run = ctx.kk_ok(&changed, "create", &[])?;

    ensure!(sum("node1", CNI_PLUGIN)? == plugin, "{CNI_PLUGIN} is not what it was");
    ensure!(sum("node2", CONTAINERD)? == config, "{CONTAINERD} is not what it was");
    checks::nodes_are_ready(ctx, site)?;
    every_node_takes_pods(ctx, site)?;
    expect_none(ctx, "create did more than repair", &unexpected(&run.events.changes()))?;
    let after = (checks::invocations(ctx, site)?, checks::restarts(ctx, site)?);
    expect_none(
        ctx,
        "units restarted that need not, or not that should",
        &restarted_wrongly(&before.0, &after.0),
    )?;
    ensure!(before.1 == after.1, "containers restarted: {:?} -> {:?}", before.1, after.1);
    let again = ctx.kk_ok(&changed, "create", &[])?;
    let left: Vec<String> = again.events.changes().iter().map(ToString::to_string).collect();
    expect_none(ctx, "a second create still has something to do", &left)
}

fn every_node_takes_pods(ctx: &Context<'_>, site: &Site) -> Result<()> {
    // The kubelet reports the number to the API after its start; kk need not wait for that.
    ctx.until(&format!("every node takes {MAX_PODS} pods"), Duration::from_secs(20), || {
        let nodes = ctx.kubectl_json(site, "get nodes")?;
        let right =
            items(&nodes).filter(|node| text(&node["status"]["allocatable"]["pods"]) == MAX_PODS.to_string());
        Ok(Some(()).filter(|()| right.count() == site.hosts.len()))
    })
}

/// Unexpected changes, and expected changes that are missing.
fn unexpected(changes: &[Changed]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut seen = BTreeSet::new();
    for change in changes {
        let module = change.task.split('/').next().unwrap_or_default();
        seen.insert((module, change.host.as_str()));
        let allowed =
            EXPECTED.iter().any(|(name, hosts)| *name == module && hosts.contains(&change.host.as_str()));
        if !allowed {
            lines.push(format!("unexpected: {change}"));
        }
    }
    for (module, hosts) in EXPECTED {
        let missing = hosts.iter().filter(|host| !seen.contains(&(*module, **host)));
        lines.extend(missing.map(|host| format!("missing: {module} on {host}")));
    }
    lines
}

/// Kubelets restart everywhere (their settings changed), containerd where it was edited, etcd nowhere.
fn restarted_wrongly(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    let should = |unit: &str| unit.ends_with("kubelet") || unit == "node2 containerd";
    let wrong = before.iter().filter(|(unit, id)| (after.get(*unit) != Some(*id)) != should(unit));
    wrong.map(|(unit, id)| format!("{unit}: {id} -> {:?}", after.get(unit))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(host: &str, task: &str) -> Changed {
        Changed { host: host.into(), task: task.into(), lines: vec!["x".into()] }
    }

    #[test]
    fn exactly_what_was_broken_is_expected() {
        let mut changes = vec![
            change("node1", "containerd/start_containerd"),
            change("node2", "containerd/configure_containerd"),
            change("node2", "containerd/start_containerd"),
            change("node1", "control-plane/apply_changed_settings"),
        ];
        changes.extend(["node1", "node2", "node3"].map(|host| change(host, "nodes/update_kubelet_settings")));
        changes.push(change("node1", "verify/wait_until_ready"));
        changes.extend(["node1", "node2", "node3"].map(|node| change(node, "verify/ask_pods")));
        assert_eq!(unexpected(&changes), Vec::<String>::new());
        changes.push(change("node3", "containerd/start_containerd"));
        changes.remove(0);
        assert_eq!(
            unexpected(&changes),
            ["unexpected: node3 containerd/start_containerd: x", "missing: containerd on node1"]
        );
    }

    #[test]
    fn a_unit_that_did_not_restart_is_as_wrong_as_one_that_did() {
        let units = |ids: [&str; 3]| -> BTreeMap<String, String> {
            ["node1 etcd", "node1 kubelet", "node2 containerd"]
                .map(str::to_owned)
                .into_iter()
                .zip(ids.map(str::to_owned))
                .collect()
        };
        assert!(restarted_wrongly(&units(["a", "b", "c"]), &units(["a", "x", "y"])).is_empty());
        assert_eq!(restarted_wrongly(&units(["a", "b", "c"]), &units(["z", "b", "y"])).len(), 2);
    }
}
