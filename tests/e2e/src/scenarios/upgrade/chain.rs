//! A cluster of Kubernetes 1.34 gets 1.35, 1.36 and 1.37, one after the other. Flags that a kubelet no longer knows leave its files.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::{FROM, TO};
use crate::checks;
use crate::context::Context;
use crate::site::Site;

/// The versions in their order. The lab builds all of them.
const VERSIONS: [&str; 4] = ["v1.34.4", "v1.35.4", FROM, TO];
/// The versions in the mirror.
pub(in super::super) const NEEDS: &[&str] =
    &["--kubernetes", VERSIONS[0], "--kubernetes", VERSIONS[1], "--kubernetes", FROM, "--kubernetes", TO];
/// For one upgrade.
const LIMIT: Duration = Duration::from_mins(10);

pub(in super::super) fn run(ctx: &Context<'_>) -> Result<()> {
    let newest = Site::booted(ctx, &ctx.dir.join("site"), 2, None, NEEDS)?;
    let with = |version: &str| {
        newest.variant(version, |cluster| cluster["spec"]["kubernetes"]["version"] = json!(version))
    };
    let site = with(VERSIONS[0])?;
    ctx.kk_ok(&site, "create", &[])?;
    checks::cluster_is_complete(ctx, &site)?;
    for (from, to) in VERSIONS.iter().zip(&VERSIONS[1..]) {
        upgrade(ctx, &with(from)?, to, &with(to)?).with_context(|| format!("from {from} to {to}"))?;
    }
    Ok(())
}

/// All nodes run the new version afterwards, and a create with it finds nothing to do.
fn upgrade(ctx: &Context<'_>, site: &Site, to: &str, upgraded: &Site) -> Result<()> {
    let words = ["upgrade", "--with-kubernetes", to, "-y", "--output", "json"];
    ctx.run("kk-upgrade", ctx.kk_job(site, &words).limit(LIMIT))?.ok()?;
    let nodes = ctx.kubectl_json(upgraded, "get nodes")?;
    for node in checks::items(&nodes) {
        let name = checks::text(&node["metadata"]["name"]);
        let version = checks::text(&node["status"]["nodeInfo"]["kubeletVersion"]);
        ensure!(version == to, "{name} has {version}");
    }
    checks::cluster_is_complete(ctx, upgraded)?;
    checks::create_changes_nothing(ctx, upgraded)?;
    Ok(())
}
