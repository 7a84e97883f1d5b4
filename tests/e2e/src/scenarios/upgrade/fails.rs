//! Upgrades that cannot succeed. Without room for a snapshot of etcd, nothing begins. If the kubelet of the control plane or of a
//! worker does not start at the new version, its node is rolled back, also when kk is killed meanwhile, and no other node is
//! begun. Once the cause is gone, the next run continues.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;

use super::{FROM, TO, is_upgraded};
use crate::checks;
use crate::context::Context;
use crate::kk::KkRun;
use crate::process::Job;
use crate::site::Site;

const UPGRADE: [&str; 6] = ["upgrade", "--with-kubernetes", TO, "-y", "--output", "json"];
const LIMIT: Duration = Duration::from_mins(10);
const BACKUPS: &str = "/var/backups/kube_etcd";
/// Keeps the kubelet of a version from starting.
const DROP_IN: &str = "/etc/systemd/system/kubelet.service.d/90-refuse.conf";

pub(in super::super) fn run(ctx: &Context<'_>) -> Result<()> {
    let versions = ["--kubernetes", FROM, "--kubernetes", TO];
    let site = Site::booted(ctx, &ctx.dir.join("site"), 3, None, &versions)?;
    ctx.kk_ok(&site, "create", &[])?;
    let (first, last) = (site.control_plane(), site.hosts.last().context("no host")?);

    ctx.host(first, &format!("mkdir -p {BACKUPS}; mount -t tmpfs -o size=64k tmpfs {BACKUPS}"))?;
    let full = KkRun::of(ctx.start("kk-upgrade", upgrade_job(ctx, &site))?)?;
    full.expect_code(1)?.expect_said(&["No space left on device"])?;
    ctx.host(first, &format!("umount {BACKUPS}"))?;
    versions_are(ctx, &site, &[FROM, FROM, FROM]).context("without a snapshot")?;

    refuse(ctx, first)?;
    said_that_it_is_back(ctx, &site, first)?;
    versions_are(ctx, &site, &[FROM, FROM, FROM]).context("the control plane was put back")?;
    allow(ctx, first)?;

    refuse(ctx, last)?;
    let mut killed = ctx.start("kk-killed", upgrade_job(ctx, &site))?;
    let output = killed.stdout_file().to_owned();
    ctx.until("kk puts the node back", LIMIT, || {
        ensure!(!killed.has_ended()?, "kk has ended before it could be killed");
        Ok(std::fs::read_to_string(&output)?.contains("rolling back to").then_some(()))
    })?;
    killed.signal(Signal::KILL)?;
    killed.wait()?;
    said_that_it_is_back(ctx, &site, last)?;
    versions_are(ctx, &site, &[TO, TO, FROM]).context("the last worker was put back")?;
    allow(ctx, last)?;

    KkRun::of(ctx.start("kk-upgrade", upgrade_job(ctx, &site))?)?.expect_code(0)?;
    is_upgraded(ctx, &site)
}

fn upgrade_job(ctx: &Context<'_>, site: &Site) -> Job {
    ctx.kk_job(site, &UPGRADE).limit(LIMIT)
}

/// Runs an upgrade in which the kubelet of this host does not start.
fn said_that_it_is_back(ctx: &Context<'_>, site: &Site, host: &str) -> Result<()> {
    let run = KkRun::of(ctx.start("kk-upgrade", upgrade_job(ctx, site))?)?;
    run.expect_code(1)?.expect_said(&[&format!("{host} is rolled back to {FROM} and works")])?;
    Ok(())
}

fn refuse(ctx: &Context<'_>, host: &str) -> Result<()> {
    let minor = TO.rsplit_once('.').map_or(TO, |(minor, _)| minor);
    let refuse = format!(
        "printf '[Service]\\nExecStartPre=/bin/sh -c \"! /usr/local/bin/kubelet --version | grep -qF {minor}.\"\\n' >{DROP_IN}
         systemctl daemon-reload"
    );
    ctx.host(host, &refuse)?;
    Ok(())
}

fn allow(ctx: &Context<'_>, host: &str) -> Result<()> {
    ctx.host(host, &format!("rm {DROP_IN}; systemctl daemon-reload"))?;
    Ok(())
}

/// The version of each node, in the order of the hosts; all are Ready and take pods.
fn versions_are(ctx: &Context<'_>, site: &Site, wanted: &[&str]) -> Result<()> {
    checks::nodes_are_ready(ctx, site)?;
    let nodes = ctx.kubectl_json(site, "get nodes")?;
    for (host, version) in site.hosts.iter().zip(wanted) {
        let node = checks::items(&nodes).find(|node| node["metadata"]["name"] == host.as_str());
        let node = node.with_context(|| format!("{host} is no node"))?;
        let found = checks::text(&node["status"]["nodeInfo"]["kubeletVersion"]);
        ensure!(found == *version, "{host} has {found}, not {version}");
        ensure!(node["spec"]["unschedulable"] != true, "{host} takes no pods");
    }
    Ok(())
}
