//! The API gets another address: first the address of a load balancer, where nothing changes until it answers, also when kk is
//! killed in the middle; then the address of the control plane again, when the load balancer is lost.

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::balanced;
use crate::checks;
use crate::context::Context;
use crate::site::{Site, host_entry};

const CREATE: [&str; 5] = ["create", "cluster", "-y", "--output", "json"];

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let direct = Site::fresh(ctx, &ctx.dir.join("site"), 3, None)?;
    let [first, worker, balancer] = &direct.hosts[..] else { bail!("three hosts") };
    let mut cluster = direct.read()?;
    let mut address = |host: &String| checks::text(&host_entry(&mut cluster, host)["address"]);
    let (old, new) = (address(first), address(balancer));
    ctx.kk_ok(&direct, "create", &[])?;
    let before = units(ctx, &direct, &[worker, balancer])?;
    let after = direct.variant("balanced", |cluster| {
        cluster["spec"]["controlPlaneEndpoint"]["address"] = json!(new);
    })?;

    let refused = ctx.kk(&after, "create", &[])?;
    refused.expect_code(5)?.expect_said(&[&format!("the API does not answer at {new}")])?;
    leads(ctx, &after, &old).context("without a load balancer nothing is changed")?;
    let balancing = balanced::balance(ctx, balancer, 6443, std::slice::from_ref(&old))?;
    ctx.until("the load balancer answers", std::time::Duration::from_secs(20), || {
        let asked = ctx.host(worker, &format!("curl -sk --max-time 2 https://{new}:6443/readyz || true"))?;
        Ok((asked.trim() == "ok").then_some(()))
    })?;
    ctx.kk_nodes(&after, &["certs", "renew"])?
        .expect_code(5)?
        .expect_said(&["kk create cluster moves it"])?;
    for (job, task) in [("kk-killed-1", "os/write_hosts_block"), ("kk-killed-2", "balancer/finish_moves")] {
        let mut killed = ctx.start(job, ctx.kk_job(&after, &CREATE))?;
        ctx.await_task(&mut killed, task)?;
        killed.signal(Signal::KILL)?;
        ensure!(killed.wait()?.code.is_none(), "kk had ended before it could be killed in {task}");
    }
    is_moved(ctx, &after, &new)?;
    ensure!(units(ctx, &direct, &[worker, balancer])? == before, "a unit of a worker was restarted");

    drop(balancing);
    is_moved(ctx, &direct, &old)
}

/// One create does it, everything works, and every pod in the network of a node has the new address.
fn is_moved(ctx: &Context<'_>, site: &Site, to: &str) -> Result<()> {
    ctx.kk_ok(site, "create", &[])?;
    checks::cluster_is_complete(ctx, site)?;
    checks::service_answers_across_nodes(ctx, site)?;
    leads(ctx, site, to)?;
    checks::create_changes_nothing(ctx, site)
}

/// Errors: the name of the API does not resolve to `to` on a host, or in a pod with the host's network. Static pods are left out:
/// they query the API server on their own host.
pub(super) fn leads(ctx: &Context<'_>, site: &Site, to: &str) -> Result<()> {
    let pods = ctx.kubectl_json(site, "get pods -A")?;
    for host in &site.hosts {
        let is_own = |pod: &&Value| {
            pod["spec"]["nodeName"] == host.as_str()
                && pod["spec"]["hostNetwork"] == true
                && pod["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_null()
        };
        let own: Vec<_> =
            checks::items(&pods).filter(is_own).map(|pod| checks::text(&pod["metadata"]["uid"])).collect();
        ensure!(!own.is_empty(), "no pod in the network of {host}");
        for uid in [None].into_iter().chain(own.iter().map(Some)) {
            let file = uid.map_or_else(
                || "/etc/hosts".to_owned(),
                |uid| format!("/var/lib/kubelet/pods/{uid}/etc-hosts"),
            );
            let there = ctx.host(
                host,
                &format!("awk 'NF == 2 && /kubesphere.local$/ {{ print $1 }}' {file} | tail -n 1"),
            )?;
            ensure!(there.trim() == to, "{file} of {host} leads to {there}, not {to}");
        }
    }
    Ok(())
}

fn units(ctx: &Context<'_>, site: &Site, hosts: &[&String]) -> Result<Vec<(String, String)>> {
    let all = checks::invocations(ctx, site)?;
    Ok(all.into_iter().filter(|(unit, _)| hosts.iter().any(|host| unit.contains(host.as_str()))).collect())
}
