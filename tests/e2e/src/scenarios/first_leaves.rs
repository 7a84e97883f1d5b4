//! Without a load balancer, of three control planes: one whose machine was replaced joins etcd under an identity of its own. The
//! first control plane, to which the name of the API resolves, leaves after the name resolves to another one on all nodes.

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;

use super::endpoint;
use crate::checks;
use crate::context::Context;
use crate::site::{Site, host_entry, keep_hosts, use_control_plane};

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let lab = Site::fresh(ctx, &ctx.dir.join("site"), 4, None)?;
    let [first, second, third, worker] = &lab.hosts[..] else { bail!("four hosts") };
    let all = lab.variant("all", |cluster| {
        let control_planes = [first, second, third];
        cluster["spec"]["roleGroups"] =
            json!({"etcd": control_planes, "control-plane": control_planes, "worker": [third, worker]});
        use_control_plane(cluster, first);
    })?;
    ctx.kk_ok(&all, "create", &[])?;

    let before = members(ctx, &all)?;
    ctx.run("power-cut", ctx.lab_job(&["down", "--host", third]))?.ok()?;
    ctx.run("new-machine", ctx.lab_job(&["up", "--host", third]))?.ok()?;
    ctx.kubectl(&all, &format!("wait --for=condition=Ready=Unknown node/{third} --timeout=120s"))?;
    ctx.kk_nodes(&all, &["add", "nodes"])?.expect_code(0)?;
    checks::cluster_is_complete(ctx, &all)?;
    let after = members(ctx, &all)?;
    ensure!(after.len() == 3, "etcd has these members: {after:?}");
    let known = after.iter().filter(|member| before.contains(member)).count();
    ensure!(known == 2, "{third} is to be another member: {before:?}, now {after:?}");
    checks::create_changes_nothing(ctx, &all)?;

    let other = all.variant("other", |cluster| {
        let address = host_entry(cluster, second)["address"].clone();
        cluster["spec"]["controlPlaneEndpoint"]["address"] = address;
    })?;
    let address = checks::text(&other.read()?["spec"]["controlPlaneEndpoint"]["address"]);
    let refused = ctx.kk_nodes(&other, &["delete", "node", first])?;
    refused.expect_code(5)?.expect_said(&["its API server is used by", "kk create cluster"])?;
    ctx.kk_ok(&other, "create", &[])?;
    endpoint::leads(ctx, &other, &address).context("after the name has gone elsewhere")?;
    ctx.kk_nodes(&other, &["delete", "node", first])?.expect_code(0)?;

    let mut rest = other.variant("rest", |cluster| {
        keep_hosts(cluster, &[second, third, worker]);
        let control_planes = [second, third];
        cluster["spec"]["roleGroups"] =
            json!({"etcd": control_planes, "control-plane": control_planes, "worker": [third, worker]});
    })?;
    rest.hosts = vec![second.clone(), third.clone(), worker.clone()];
    checks::cluster_is_complete(ctx, &rest)?;
    ensure!(members(ctx, &rest)?.len() == 2, "etcd still has the member of {first}");
    checks::service_answers_across_nodes(ctx, &rest).context("without the first control plane")?;
    checks::create_changes_nothing(ctx, &rest)
}

/// Identity and name of each member.
fn members(ctx: &Context<'_>, site: &Site) -> Result<Vec<String>> {
    let text = checks::etcd_identity(ctx, site)?;
    let (_, members) = text.split_once(": ").context("no members")?;
    Ok(members.split(", ").map(str::to_owned).collect())
}
