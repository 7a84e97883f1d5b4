//! An upgrade requests KubeSphere for a cluster that does not have it: it is installed after the last node has its version.

use anyhow::{Result, ensure};
use serde_json::json;

use super::image::Payload;
use super::{Lab, VERSION, at_work};
use crate::checks;
use crate::context::Context;
use crate::scenarios::{FROM, TO};
use crate::site::Site;

pub(in super::super) fn run(ctx: &Context<'_>) -> Result<()> {
    let versions = ["--kubernetes", FROM, "--kubernetes", TO];
    let bare = Site::booted(ctx, &ctx.dir.join("site"), 2, None, &versions)?;
    ctx.kk_ok(&bare, "create", &[])?;
    at_work(ctx, &bare, Payload::StandIns, upgrades)
}

fn upgrades(lab: &Lab<'_>) -> Result<()> {
    let (ctx, site) = (lab.ctx, lab.with(&json!({"metrics_server": {"enabled": true}}))?);
    let words = ["upgrade", "--with-kubernetes", TO, "--with-kubesphere", "-y", "--output", "json"];
    let job = ctx.kk_job(&site, &words).limit(std::time::Duration::from_mins(10));
    let said = ctx.run("kk-upgrade", job)?.ok()?;
    ensure!(said.contains(&format!("{VERSION}, 3 components are ready")), "no summary:\n{said}");
    let versions = "get nodes -o jsonpath={.items[*].status.nodeInfo.kubeletVersion}";
    let versions = ctx.kubectl(&site, versions)?;
    ensure!(
        versions.split_whitespace().all(|version| version == TO),
        "not all nodes are at {TO}: {versions}"
    );
    let status = lab.object()?["status"].take();
    ensure!(checks::text(&status["core"]["version"]) == VERSION, "KubeSphere is not ready: {status}");
    checks::cluster_is_complete(ctx, &site)
}
