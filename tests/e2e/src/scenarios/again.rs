//! Create again: nothing changes, nothing restarts, two round trips a host, and `kk` reports this.

use anyhow::{Result, ensure};

use crate::checks;
use crate::cluster;
use crate::context::Context;

/// Connect and probe.
const ROUND_TRIPS: u64 = 2;

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let site = cluster::ensure(ctx)?.site;
    let looks = || -> Result<_> { Ok((checks::invocations(ctx, &site)?, checks::restarts(ctx, &site)?)) };
    let before = looks()?;
    for host in &site.hosts {
        ctx.host(host, "touch /run/e2e-before; sleep 0.02")?;
    }
    let run = ctx.kk_ok(&site, "create", &[])?;
    let changes: Vec<String> = run.events.changes().iter().map(ToString::to_string).collect();
    ensure!(changes.is_empty(), "the second create changed something:\n{}", changes.join("\n"));
    let finished = run.events.finished()?;
    ensure!(finished.changed == 0, "the second create counted {} changes", finished.changed);
    for (host, trips) in &finished.round_trips {
        ensure!(*trips <= ROUND_TRIPS, "{host} took {trips} round trips, not {ROUND_TRIPS}");
    }
    for host in &site.hosts {
        // Only what an idle cluster leaves unchanged, and not the cache of checksums, which may grow at any check.
        let written = ctx.host(
            host,
            "find /etc /usr /opt /root /home /var/lib/kubelet/config.yaml -xdev -newer /run/e2e-before -not -type d -not -path /etc/kubekey/sums; rm /run/e2e-before",
        )?;
        ensure!(written.is_empty(), "the second create wrote files on {host}:\n{written}");
    }
    let after = looks()?;
    ensure!(before == after, "something restarted: {before:?} -> {after:?}");
    // The text output reports this, too.
    let text = ctx.run("kk-create-text", ctx.kk_job(&site, &["create", "cluster", "-y", "--no-progress"]))?;
    let said = format!("{}{}", text.stdout, text.stderr);
    text.ok()?;
    ensure!(said.contains("nothing had to be done"), "kk does not say that nothing had to be done:\n{said}");
    Ok(())
}
