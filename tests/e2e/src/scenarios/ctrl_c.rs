//! Ctrl-C in the middle: a clean end with code 130, nothing half-written, and the next create succeeds.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;

use crate::checks;
use crate::context::Context;
use crate::kk::KkRun;
use crate::site::{Site, files_below};

/// A clean end is also a quick one: running actions may finish, and none of these takes longer.
const PATIENCE: Duration = Duration::from_mins(1);

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let site = Site::fresh(ctx, &ctx.dir.join("site"), 3, None)?;
    for task in ["etcd/start_etcd", "control-plane/init_control_plane"] {
        interrupted_at(ctx, &site, task, 1)?;
    }
    // A second signal ends at once the actions that may finish after the first one.
    interrupted_at(ctx, &site, "nodes/join_worker", 2)?;
    ctx.kk_ok(&site, "create", &[]).context("create after Ctrl-C")?;
    checks::cluster_is_complete(ctx, &site)
}

fn interrupted_at(ctx: &Context<'_>, site: &Site, task: &str, times: usize) -> Result<()> {
    let mut kk = ctx.kk_start(site, "create", &[])?;
    ctx.await_task(&mut kk, task)?;
    for _ in 0..times {
        kk.signal(Signal::INT)?;
        std::thread::sleep(Duration::from_millis(300));
    }
    ctx.until(&format!("kk ends after Ctrl-C during {task}"), PATIENCE, || {
        Ok(Some(()).filter(|()| kk.has_ended().unwrap_or(true)))
    })?;
    let run = KkRun::of(kk)?;
    run.expect_code(130)?.expect_said(&["cancelled"])?;
    nothing_half_written(&site.workdir())?;
    for host in &site.hosts {
        let left =
            ctx.host(host, "ps -eo args= | grep -E '^(sh|bash|tar|kubeadm) ' | grep -v 'ps -eo' || true")?;
        ensure!(!left.contains("kubeadm"), "kubeadm still runs on {host} after Ctrl-C:\n{left}");
    }
    Ok(())
}

/// Files are complete or do not exist. A partial download that can be resumed has its own suffix.
fn nothing_half_written(directory: &Path) -> Result<()> {
    for path in files_below(directory) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let half = name.contains(".new-") || name.contains(".tmp");
        ensure!(!half, "a half-written file stays: {}", path.display());
    }
    Ok(())
}
