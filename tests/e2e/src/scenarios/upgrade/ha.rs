//! Three control planes behind a load balancer get the next minor version of Kubernetes, and the API answers through its endpoint
//! all the time.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::super::balanced;
use super::{FROM, TO, is_upgraded};
use crate::checks;
use crate::context::Context;
use crate::report;
use crate::site::Site;

/// Total time for which the API may be unavailable, in milliseconds.
const MOST_MISSED: u64 = 2000;

pub(in super::super) fn run(ctx: &Context<'_>) -> Result<()> {
    let versions = ["--kubernetes", FROM, "--kubernetes", TO];
    let lab = Site::booted(ctx, &ctx.dir.join("site"), 4, None, &versions)?;
    let (site, _balancing) = balanced::site(ctx, &lab)?;
    ctx.kk_ok(&site, "create", &[])?;
    checks::cluster_is_complete(ctx, &site)?;

    let asking = ctx.on_host(site.control_plane(), include_str!("ask_api.sh")).limit(Duration::from_mins(15));
    let asking = ctx.start("ask-api", asking)?;
    let words = ["upgrade", "--with-kubernetes", TO, "-y", "--output", "json"];
    let upgrade = ctx.run("kk-upgrade", ctx.kk_job(&site, &words).limit(Duration::from_mins(12)))?;
    ctx.host(site.control_plane(), "touch /tmp/asked-api.stop")?;
    let asked = asking.wait()?.ok()?;
    ensure!(
        upgrade.code == Some(0),
        "the upgrade ended with {:?}: {}",
        upgrade.code,
        report::last_lines(&upgrade.stderr)
    );
    let number =
        |name: &str| asked.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    let (count, missed) =
        (number("asked ").context("it did not ask")?, number("missed ").context("it did not end")?);
    report::line(&format!("the API was asked {count} times and gave no answers for {missed} ms"));
    ensure!(missed <= MOST_MISSED, "the API gave no answers for {missed} ms:\n{asked}");

    is_upgraded(ctx, &site)
}
