//! `kk` is killed at random moments while kubeadm initialises and joins; the next create makes the same cluster.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::Signal;

use crate::checks;
use crate::cluster;
use crate::context::Context;
use crate::fingerprint;
use crate::host_state::expect_none;
use crate::report;
use crate::site::Site;

/// How many moments; another number by the variable.
const MOMENTS: u32 = 30;
/// How many a run of CI tries.
const SOME: u32 = 4;
const MOMENTS_VARIABLE: &str = "KK_E2E_KILLS";
/// Delay after the beginning of the task. If a join has ended by then, the kill happens in a later task.
const TASKS: [(&str, u64); 2] = [("control-plane/init_control_plane", 8000), ("nodes/join_worker", 4000)];

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let moments = std::env::var(MOMENTS_VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(MOMENTS);
    at_moments(ctx, moments)
}

pub(super) fn run_some(ctx: &Context<'_>) -> Result<()> {
    at_moments(ctx, SOME)
}

fn at_moments(ctx: &Context<'_>, moments: u32) -> Result<()> {
    let whole = cluster::ensure(ctx)?;
    let wanted = fingerprint::of(ctx, &whole.site)?;
    for number in 0..moments {
        let (task, longest) = TASKS[usize::try_from(number)? % TASKS.len()];
        let into = Duration::from_millis(RandomState::new().hash_one(number) % longest);
        let what = format!("killed {} ms into {task}", into.as_millis());
        // Hosts and directory are new each time, so no download is kept.
        let site = Site::fresh(ctx, &ctx.dir.join("site"), 3, None)?;
        one(ctx, &site, task, into, &wanted).with_context(|| what.clone())?;
        report::line(&format!("  ok     {what}"));
    }
    Ok(())
}

fn one(
    ctx: &Context<'_>,
    site: &Site,
    task: &str,
    into: Duration,
    wanted: &std::collections::BTreeMap<String, String>,
) -> Result<()> {
    let mut kk = ctx.kk_start(site, "create", &[])?;
    ctx.await_task(&mut kk, task)?;
    sleep(into);
    if !kk.has_ended()? {
        kk.signal(Signal::KILL)?;
    }
    kk.wait()?;
    ctx.kk_ok(site, "create", &[]).context("the next create")?;
    checks::cluster_is_complete(ctx, site)?;
    let lines = fingerprint::differences(wanted, &fingerprint::of(ctx, site)?);
    expect_none(ctx, "the CA of the cluster differs from the CA in", &lines)?;
    let again = ctx.kk_ok(site, "create", &[])?;
    let changes: Vec<String> = again.events.changes().iter().map(ToString::to_string).collect();
    expect_none(ctx, "create still has something to do", &changes)
}
