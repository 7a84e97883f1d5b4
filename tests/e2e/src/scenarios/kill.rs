//! `kk` is killed in the middle of etcd, init and join; the next create makes the same cluster.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::Signal;

use crate::checks;
use crate::cluster;
use crate::context::Context;
use crate::fingerprint;
use crate::host_state::expect_none;
use crate::kk::KkRun;
use crate::site::Site;

/// The task during which the kill happens, and the delay after the task's beginning.
const MOMENTS: &[(&str, Duration)] = &[
    ("etcd/start_etcd", Duration::from_millis(150)),
    ("control-plane/init_control_plane", Duration::from_millis(2500)),
    ("nodes/join_worker", Duration::from_millis(600)),
];

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let whole = cluster::ensure(ctx)?;
    let wanted = fingerprint::of(ctx, &whole.site)?;
    for (number, (task, into)) in MOMENTS.iter().enumerate() {
        let site = Site::fresh(ctx, &ctx.dir.join(format!("site-{}", number + 1)), 3, None)?;
        killed_at(ctx, &site, task, *into)?;
        ctx.kk_ok(&site, "create", &[]).with_context(|| format!("create after a kill during {task}"))?;
        checks::cluster_is_complete(ctx, &site).with_context(|| format!("after a kill during {task}"))?;
        let lines = fingerprint::differences(&wanted, &fingerprint::of(ctx, &site)?);
        expect_none(ctx, &format!("after a kill during {task}, the cluster is another one"), &lines)?;
        let again = ctx.kk_ok(&site, "create", &[])?;
        let changes: Vec<String> = again.events.changes().iter().map(ToString::to_string).collect();
        expect_none(ctx, &format!("after a kill during {task}, create still has something to do"), &changes)?;
    }
    Ok(())
}

/// The same for one moment, without another cluster to compare with.
pub(super) fn run_init(ctx: &Context<'_>) -> Result<()> {
    let (task, into) = MOMENTS[1];
    let site = Site::fresh(ctx, &ctx.dir.join("site"), 3, None)?;
    killed_at(ctx, &site, task, into)?;
    ctx.kk_ok(&site, "create", &[])?;
    checks::cluster_is_complete(ctx, &site)?;
    checks::service_answers_across_nodes(ctx, &site)?;
    checks::create_changes_nothing(ctx, &site)?;
    Ok(())
}

fn killed_at(ctx: &Context<'_>, site: &Site, task: &str, into: Duration) -> Result<()> {
    let mut kk = ctx.kk_start(site, "create", &[])?;
    ctx.await_task(&mut kk, task)?;
    sleep(into);
    kk.signal(Signal::KILL)?;
    let run = KkRun::of(kk)?;
    anyhow::ensure!(run.finished.code.is_none(), "kk had ended before it could be killed during {task}");
    Ok(())
}
