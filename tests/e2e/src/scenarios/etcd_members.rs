//! etcd grows from one member to three with `kk add nodes`, and loses one with `kk delete node`: the data stays, the API servers
//! know the members, nothing else restarts, and a create finds nothing to do.

use anyhow::{Result, bail, ensure};
use rustix::process::Signal;
use serde_json::json;

use crate::checks;
use crate::context::Context;
use crate::site::{Site, keep_hosts, use_control_plane};

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let lab = Site::fresh(ctx, &ctx.dir.join("site"), 4, None)?;
    let [first, second, third, worker] = &lab.hosts[..] else { bail!("four hosts") };
    let of = |name: &str, hosts: &[&String]| -> Result<Site> {
        let mut site = lab.variant(name, |cluster| {
            let all: Vec<&String> = hosts.iter().copied().chain([worker]).collect();
            keep_hosts(cluster, &all);
            cluster["spec"]["roleGroups"] =
                json!({"etcd": hosts, "control-plane": hosts, "worker": [worker]});
            use_control_plane(cluster, first);
        })?;
        site.hosts = hosts.iter().copied().chain([worker]).cloned().collect();
        Ok(site)
    };
    let (one, three, two) =
        (of("one", &[first])?, of("three", &[first, second, third])?, of("two", &[first, second])?);

    ctx.kk_ok(&one, "create", &[])?;
    ctx.kubectl(&one, "create configmap before --from-literal=members=1")?;
    let units = checks::invocations(ctx, &one)?;

    // Killed while a member joins: the next run continues.
    let words = ["add", "nodes", "-y", "--output", "json"];
    let mut killed = ctx.start("kk-add-nodes-killed", ctx.kk_job(&three, &words))?;
    ctx.await_task(&mut killed, "etcd/join_member")?;
    killed.signal(Signal::KILL)?;
    drop(killed.wait()?);
    ctx.kk_nodes(&three, &["add", "nodes"])?.expect_code(0)?;
    checks::cluster_is_complete(ctx, &three)?;
    has_members(ctx, &three, 3)?;
    ensure!(checks::invocations(ctx, &one)? == units, "a unit of a node that was there was restarted");
    ctx.kubectl(&three, "get configmap before")?;
    checks::create_changes_nothing(ctx, &three)?;

    ctx.kk_nodes(&three, &["delete", "node", third])?.expect_code(0)?;
    checks::cluster_is_complete(ctx, &two)?;
    has_members(ctx, &two, 2)?;
    ctx.kubectl(&two, "get configmap before")?;
    checks::create_changes_nothing(ctx, &two)?;

    ctx.kk_nodes(&two, &["delete", "node", second])?.expect_code(0)?;
    checks::cluster_is_complete(ctx, &one)?;
    has_members(ctx, &one, 1)?;
    ctx.kubectl(&one, "get configmap before")?;
    checks::create_changes_nothing(ctx, &one)?;
    Ok(())
}

/// They vote, and every API server uses all of them.
fn has_members(ctx: &Context<'_>, site: &Site, count: usize) -> Result<()> {
    let members = checks::etcd_identity(ctx, site)?;
    ensure!(members.matches("etcd-").count() == count, "etcd has these members: {members}");
    for host in site.hosts.iter().take(count) {
        let flag =
            ctx.host(host, "grep -o 'etcd-servers=.*' /etc/kubernetes/manifests/kube-apiserver.yaml")?;
        ensure!(flag.matches("https://").count() == count, "the API server of {host} has {flag}");
    }
    Ok(())
}
