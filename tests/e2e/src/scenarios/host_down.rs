//! A host has no power: a worker, then one that runs etcd, then the first control plane of three. What can be repaired is
//! repaired, the host is named, and no advice is given to destroy what is healthy.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::checks;
use crate::context::Context;
use crate::site::{Site, host_entry, use_control_plane};

/// Three control planes with etcd, and a worker. What is repaired meanwhile is on another host.
const LOST: [(&str, &str); 3] = [("node4", "node2"), ("node3", "node2"), ("node1", "node2")];

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let lab = Site::fresh(ctx, &ctx.dir.join("site"), 4, None)?;
    let site = lab.variant("ha", |cluster| {
        let groups = &mut cluster["spec"]["roleGroups"];
        groups["control-plane"] = json!(["node1", "node2", "node3"]);
        groups["etcd"] = json!(["node1", "node2", "node3"]);
        groups["worker"] = json!(["node4"]);
        use_control_plane(cluster, "node1");
        for host in ["node1", "node2", "node3", "node4"] {
            host_entry(cluster, host)["timeout"] = json!(3);
        }
    })?;
    ctx.kk_ok(&site, "create", &[])?;
    checks::cluster_is_complete(ctx, &site)?;
    for (lost, broken) in LOST {
        without(ctx, &site, lost, broken).with_context(|| format!("without {lost}"))?;
    }
    delete_in_two_parts(ctx, &site)
}

/// A host that a delete could not reach is cleaned by the next delete.
fn delete_in_two_parts(ctx: &Context<'_>, site: &Site) -> Result<()> {
    ctx.power("node3", "off")?;
    ctx.kk(site, "delete", &["--all"])?.expect_code(6)?.expect_said(&["node3"])?;
    ctx.host("node2", "test ! -e /etc/kubekey/owned").context("node2 was not cleaned")?;
    ctx.power("node3", "on")?;
    ctx.kk_ok(site, "delete", &["--all"]).context("delete when it has power again")?;
    ctx.host("node3", "test ! -e /etc/kubekey/owned").context("node3 was not cleaned")?;
    Ok(())
}

fn without(ctx: &Context<'_>, site: &Site, lost: &str, broken: &str) -> Result<()> {
    ctx.power(lost, "off")?;
    ctx.host(broken, "rm /opt/cni/bin/bridge")?;
    let run = ctx.kk(site, "create", &[])?;
    run.expect_said(&[lost])?;
    let run = run.expect_code(6)?;
    let advice = run.finished.stderr.to_lowercase();
    ensure!(!advice.contains("delete cluster"), "it advises to delete a healthy cluster:\n{advice}");
    ctx.host(broken, "test -x /opt/cni/bin/bridge").with_context(|| format!("{broken} was not repaired"))?;
    pods_of_others_are_ready(ctx, site, lost, broken)?;
    ctx.power(lost, "on")?;
    ctx.kk_ok(site, "create", &[]).context("create when it has power again")?;
    ctx.until("all nodes are Ready", std::time::Duration::from_mins(2), || {
        Ok(checks::nodes_are_ready(ctx, site).ok())
    })?;
    checks::cluster_is_complete(ctx, site)
}

/// What kk deploys is ready on the other nodes, when kk says so. `asked`: where the API is asked.
fn pods_of_others_are_ready(ctx: &Context<'_>, site: &Site, lost: &str, asked: &str) -> Result<()> {
    let pods = ctx.host(asked, "kubectl --kubeconfig /etc/kubernetes/admin.conf get pods -A -o json")?;
    let pods: Value = serde_json::from_str(&pods).context("kubectl printed no JSON")?;
    let mut ready = BTreeSet::new();
    for pod in checks::items(&pods).filter(|pod| pod["spec"]["nodeName"] != lost) {
        let (name, conditions) = (checks::text(&pod["metadata"]["name"]), &pod["status"]["conditions"]);
        let is_ready = conditions
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"));
        ensure!(is_ready, "{name} is not ready: {}", pod["status"]);
        let workload = name.split('-').take(2).collect::<Vec<_>>().join("-");
        ready.insert(format!("{workload} {}", checks::text(&pod["spec"]["nodeName"])));
    }
    for node in site.hosts.iter().filter(|node| *node != lost) {
        for workload in ["kube-flannel", "kube-proxy"] {
            let pod = format!("{workload} {node}");
            ensure!(ready.contains(&pod), "no pod of {pod} in {ready:?}");
        }
    }
    Ok(())
}
