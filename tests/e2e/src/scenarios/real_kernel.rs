//! Hosts with a kernel of their own and cgroup v2: create, again, reboot, other modes of kube-proxy, delete; and a cluster of
//! containers and one such host with two networks.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use crate::checks;
use crate::context::Context;
use crate::host_state;
use crate::site::Site;

/// Emulated, a create takes 4 to 15 minutes.
const LIMIT: Duration = Duration::from_mins(20);
/// kube-proxy and CoreDNS need minutes after a boot.
const AFTER_REBOOT: Duration = Duration::from_mins(10);

/// How many times as long as a container an emulated machine needs.
const SLOWER: u32 = 12;

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let site = Site::booted(ctx, &ctx.dir.join("machine"), 1, None, &["--real-kernel"])?;
    let host = site.control_plane();
    let version = ctx.host(host, "stat -f -c %T /sys/fs/cgroup")?;
    ensure!(version.trim() == "cgroup2fs", "the control groups are {version}");
    // Once loaded, the modules stay for all packet filter rules. They are loaded before, so that their settings are compared as
    // well.
    ctx.host(host, "modprobe -a nf_conntrack nf_nat")?;
    let before = host_state::of_all(ctx, &site.hosts)?;
    ctx.kk_slow(&site, "create", &[], LIMIT)?;
    checks::cluster_is_complete(ctx, &site)?;
    settle(ctx, &site)?;
    let again = ctx.kk_slow(&site, "create", &[], LIMIT)?;
    ensure!(again.events.changes().is_empty(), "the second create changed something");

    ctx.power(host, "off")?;
    ctx.power(host, "on")?;
    ctx.until("the cluster is complete after a power cut", AFTER_REBOOT, || {
        Ok(checks::cluster_is_complete(ctx, &site).ok())
    })?;
    settle(ctx, &site)?;
    for mode in ["nftables", "ipvs"] {
        let changed =
            site.variant(mode, |cluster| cluster["spec"]["kubernetes"]["proxyMode"] = json!(mode))?;
        ctx.kk_slow(&changed, "create", &[], LIMIT)?;
        checks::cluster_is_complete(ctx, &changed)?;
        let logs = ctx.kubectl(&site, "-n kube-system logs -l k8s-app=kube-proxy --tail=-1")?;
        ensure!(
            logs.to_lowercase().contains(&format!("using {mode} proxier")),
            "kube-proxy does not use {mode}"
        );
    }
    ctx.kk_slow(&site, "delete", &["--all"], LIMIT)?;
    host_state::expect_restored(ctx, &before)
}

/// An emulated machine is busy for minutes after a create. While its API answers no query in time, a create is not without
/// effect: it waits, and applies what it could not query.
fn settle(ctx: &Context<'_>, site: &Site) -> Result<()> {
    ctx.until("the API answers within 5 s", AFTER_REBOOT, || {
        let began = Instant::now();
        let answered = ctx.kubectl(site, "get nodes").is_ok();
        Ok((answered && began.elapsed() < Duration::from_secs(5)).then_some(()))
    })
}

pub(super) fn networks(ctx: &Context<'_>) -> Result<()> {
    let site = Site::fresh(ctx, &ctx.dir.join("mixed"), 3, None)?;
    let boot = ["up", "--host", "node3", "--real-kernel", "--networks", "2"];
    ctx.run("lab-up", ctx.lab_job(&boot).limit(LIMIT))?.ok()?;
    ctx.kk_slow(&site, "create", &[], LIMIT)?;
    checks::cluster_is_complete(ctx, &site)?;
    checks::service_answers_on_slow_hosts(ctx, &site, SLOWER)
}
