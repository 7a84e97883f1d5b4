//! `kk delete node`: a worker and a control plane leave a running cluster. Nodes with pods that cannot move stay, a host without
//! power is removed with `--gone`, and afterwards a create with the file that names the others finds nothing to do.

use anyhow::{Result, bail, ensure};
use serde_json::json;

use crate::checks;
use crate::context::Context;
use crate::host_state;
use crate::site::{Site, host_entry, keep_hosts, use_control_plane};

/// A pod that no controller re-creates.
const LONELY: &str = "{apiVersion: v1, kind: Pod, metadata: {name: lonely}, spec: {nodeName: NODE, \
                      containers: [{name: c, image: IMAGE}]}}";

/// A pod on the node that no drain may evict.
const BUDGET: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: kept}
spec:
  selector: {matchLabels: {app: kept}}
  template:
    metadata: {labels: {app: kept}}
    spec: {nodeSelector: {kubernetes.io/hostname: NODE}, containers: [{name: c, image: IMAGE}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: kept}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: kept}}}
";

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let lab = Site::fresh(ctx, &ctx.dir.join("site"), 4, None)?;
    let [first, control_plane, worker, other] = &lab.hosts[..] else { bail!("four hosts") };
    let all = lab.variant("all", |cluster| {
        cluster["spec"]["roleGroups"] =
            json!({"etcd": [first], "control-plane": [first, control_plane], "worker": [worker, other]});
        use_control_plane(cluster, first);
    })?;
    let before = host_state::of_all(ctx, &[control_plane.clone(), worker.clone()])?;
    ctx.kk_ok(&all, "create", &[])?;

    for (names, said) in [
        (vec![first.as_str()], "no member of etcd left"),
        (vec![worker, other], "no worker left"),
        (vec!["nobody"], "the file has no host nobody"),
    ] {
        let run = ctx.kk_nodes(&all, &[&["delete", "node"], &names[..]].concat())?;
        ensure!(run.finished.code != Some(0), "{names:?} were removed");
        run.expect_said(&[said])?;
    }

    pods_that_cannot_move_keep_their_node(ctx, &all, worker)?;

    // Killed in between: the next run continues.
    let words = ["delete", "node", worker, control_plane, "--all", "--force", "--drain-timeout", "20"];
    let silent = [&words[..], &["-y", "--output", "json"]].concat();
    let mut killed = ctx.start("kk-delete-node-killed", ctx.kk_job(&all, &silent))?;
    ctx.await_task(&mut killed, "os/restore_host")?;
    killed.signal(rustix::process::Signal::KILL)?;
    ensure!(killed.wait()?.code.is_none(), "kk had ended before it could be killed");
    ctx.kk_nodes(&all, &words)?.expect_code(0)?;
    ctx.kubectl(&all, "delete deployment/kept poddisruptionbudget/kept")?;
    host_state::expect_restored(ctx, &before)?;

    let mut rest = all.variant("rest", |cluster| {
        keep_hosts(cluster, &[first, other]);
        cluster["spec"]["roleGroups"] = json!({"etcd": [first], "control-plane": [first], "worker": [other]});
    })?;
    rest.hosts = vec![first.clone(), other.clone()];
    checks::cluster_is_complete(ctx, &rest)?;
    checks::create_changes_nothing(ctx, &rest)?;

    // A worker joins again under its name, and then its host is lost.
    let mut grown = all.variant("grown", |cluster| {
        keep_hosts(cluster, &[first, worker, other]);
        cluster["spec"]["roleGroups"] =
            json!({"etcd": [first], "control-plane": [first], "worker": [worker, other]});
        host_entry(cluster, worker)["timeout"] = json!(3);
    })?;
    grown.hosts = vec![first.clone(), worker.clone(), other.clone()];
    ctx.kk_nodes(&grown, &["add", "nodes"])?.expect_code(0)?;
    checks::cluster_is_complete(ctx, &grown)?;
    ctx.run("power-cut", ctx.lab_job(&["down", "--host", worker]))?.ok()?;
    ctx.kk_nodes(&grown, &["delete", "node", worker])?.expect_code(4)?.expect_said(&[worker, "--gone"])?;
    ctx.kk_nodes(&grown, &["delete", "node", worker, "--gone"])?.expect_code(0)?;
    checks::cluster_is_complete(ctx, &rest)
}

/// A pod that no controller re-creates, and a pod that a budget keeps: each is reported, and the node takes pods again. The later
/// run with `--force` removes both.
fn pods_that_cannot_move_keep_their_node(ctx: &Context<'_>, site: &Site, node: &str) -> Result<()> {
    let coredns = ctx.kubectl_json(site, "-n kube-system get deployment coredns")?;
    let image = checks::text(&coredns["spec"]["template"]["spec"]["containers"][0]["image"]);
    for (pod, objects) in [("kept", BUDGET), ("lonely", LONELY)] {
        ctx.apply(site, &objects.replace("NODE", node).replace("IMAGE", &image))?;
        if pod == "kept" {
            ctx.kubectl(site, "rollout status deployment kept --timeout=60s")?;
        }
        ctx.kk_nodes(site, &["delete", "node", node, "--drain-timeout", "20"])?
            .expect_code(1)?
            .expect_said(&[pod, node])?;
        let state = ctx.kubectl_json(site, &format!("get node {node}"))?;
        ensure!(state["spec"]["unschedulable"] != true, "{node} takes no pods any more");
        checks::nodes_are_ready(ctx, site)?;
    }
    Ok(())
}
