//! `kk add nodes`: a worker and a control plane join a running cluster. Its workloads are not disturbed, a killed run is resumed,
//! and afterwards a create with the same file finds nothing to do.

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::checks;
use crate::context::Context;
use crate::kk::KkRun;
use crate::site::{Site, host_entry, keep_hosts, use_control_plane};

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let lab = Site::fresh(ctx, &ctx.dir.join("site"), 4, None)?;
    let [first, worker, control_plane, new_worker] = &lab.hosts[..] else { anyhow::bail!("four hosts") };
    let mut before = lab.variant("before", |cluster| {
        keep_hosts(cluster, &[first, worker]);
        cluster["spec"]["roleGroups"] =
            json!({"etcd": [first], "control-plane": [first], "worker": [worker]});
    })?;
    before.hosts.truncate(2);
    let after = lab.variant("after", |cluster| {
        cluster["spec"]["roleGroups"] = json!({
            "etcd": [first], "control-plane": [first, control_plane], "worker": [worker, new_worker]
        });
        use_control_plane(cluster, first);
    })?;

    ctx.kk_nodes(&after, &["add", "nodes"])?
        .expect_code(5)?
        .expect_said(&["no running cluster", "kk create cluster"])?;
    ctx.kk_ok(&before, "create", &[])?;
    let (units, pods) = (checks::invocations(ctx, &before)?, checks::restarts(ctx, &before)?);

    let changed = after.variant("changed", |cluster| {
        cluster["spec"]["kubernetes"]["maxPods"] = json!(77);
    })?;
    ctx.kk_nodes(&changed, &["add", "nodes"])?
        .expect_code(5)?
        .expect_said(&["also changes settings of the cluster"])?;

    // Killed while the new nodes join, and again before kk has seen them Ready: the next run continues.
    let words = ["add", "nodes", "-y", "--output", "json"];
    for (job, task) in [("kk-killed-1", "nodes/join_worker"), ("kk-killed-2", "verify/wait_until_ready")] {
        let mut killed = ctx.start(job, ctx.kk_job(&after, &words))?;
        ctx.await_task(&mut killed, task)?;
        killed.signal(Signal::KILL)?;
        let killed = KkRun::of(killed)?;
        ensure!(killed.finished.code.is_none(), "kk had ended before it could be killed in {task}");
    }
    let added = ctx.kk_nodes(&after, &["add", "nodes"])?;
    added.expect_code(0)?;

    checks::cluster_is_complete(ctx, &after)?;
    let now = checks::invocations(ctx, &before)?;
    ensure!(now == units, "units of nodes that were there before were restarted: {units:?}, now {now:?}");
    let restarts = checks::restarts(ctx, &after)?;
    for (container, count) in pods {
        // The number of CoreDNS pods follows the number of nodes; none of them may be replaced.
        ensure!(restarts.get(&container) == Some(&count), "{container} was restarted or replaced");
    }
    api_answers_by_its_own_address(ctx, &after, control_plane)?;

    for command in [["add", "nodes"], ["create", "cluster"]] {
        let again = ctx.kk_nodes(&after, &command)?;
        again.expect_code(0)?;
        ensure!(again.events.changes().is_empty(), "{command:?} after it changed something");
    }

    let (code, status) = status(ctx, &after)?;
    ensure!(code == Some(0) && status["drift"] == json!([]), "the status is {code:?}: {status:#}");

    // A neighbour without power is named and does not stop it; nothing is left to add.
    ctx.run("power-cut", ctx.lab_job(&["down", "--host", worker]))?.ok()?;
    let impatient =
        after.variant("impatient", |cluster| host_entry(cluster, worker)["timeout"] = json!(3))?;
    ctx.kk_nodes(&impatient, &["add", "nodes"])?.expect_code(6)?.expect_said(&[worker])?;
    let (code, status) = self::status(ctx, &impatient)?;
    let nodes = status["nodes"].as_array().into_iter().flatten();
    let silent: Vec<_> = nodes.filter(|node| node["state"] == "silent").map(|node| &node["name"]).collect();
    ensure!(code == Some(1) && silent == [worker], "the status is {code:?}: {status:#}");
    a_new_machine_takes_its_place(ctx, &after, worker)
}

/// A new, untouched machine has the name and the address of a lost node.
fn a_new_machine_takes_its_place(ctx: &Context<'_>, site: &Site, lost: &str) -> Result<()> {
    ctx.run("new-machine", ctx.lab_job(&["up", "--host", lost]))?.ok()?;
    ctx.kubectl(site, &format!("wait --for=condition=Ready=Unknown node/{lost} --timeout=120s"))?;
    let run = ctx.kk_nodes(site, &["add", "nodes"])?;
    run.expect_code(0)?;
    let said = run.events.found("adapted");
    ensure!(
        said.iter().any(|words| words.contains("it is a new machine that replaces a node of the cluster")),
        "the new machine is not named: {said:?}"
    );
    checks::cluster_is_complete(ctx, site)?;
    let again = ctx.kk_nodes(site, &["create", "cluster"])?;
    again.expect_code(0)?;
    ensure!(again.events.changes().is_empty(), "a create changed {:?}", again.events.changes());
    Ok(())
}

/// The output of `kk status`, and its exit code.
fn status(ctx: &Context<'_>, site: &Site) -> Result<(Option<i32>, Value)> {
    let run = ctx.run("kk-status", ctx.kk_job(site, &["status", "--output", "json"]))?;
    let status = serde_json::from_str(&run.stdout).context("kk status printed no JSON")?;
    Ok((run.code, status))
}

fn api_answers_by_its_own_address(ctx: &Context<'_>, site: &Site, host: &str) -> Result<()> {
    let mut cluster = site.read()?;
    let address = checks::text(&host_entry(&mut cluster, host)["address"]);
    let url = format!(
        "curl --silent --cacert /etc/kubernetes/pki/ca.crt --max-time 5 https://{address}:6443/readyz"
    );
    let said = ctx.host(host, &url).with_context(|| format!("the API of {host}"))?;
    ensure!(said == "ok", "the API of {host} is `{said}`");
    Ok(())
}
