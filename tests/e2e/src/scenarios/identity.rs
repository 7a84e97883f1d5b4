//! A delete with a file whose hosts belong to another cluster, and a delete on a control plane without a file: both change
//! nothing and report what they found.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::checks;
use crate::cluster;
use crate::context::Context;

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let site = cluster::ensure(ctx)?.site;
    let units = checks::invocations(ctx, &site)?;
    let name = site.read()?["metadata"]["name"].as_str().context("a cluster has a name")?.to_owned();

    let staging = site.variant("staging", |cluster| cluster["metadata"]["name"] = json!("staging"))?;
    for command in ["delete", "create"] {
        let more: &[&str] = if command == "delete" { &["--all"] } else { &[] };
        let run = ctx.kk(&staging, command, more)?;
        ensure!(run.finished.code != Some(0), "{command} of another cluster's hosts ended with code 0");
        run.expect_said(&[&name, "staging"])?;
        ensure!(
            checks::invocations(ctx, &site)? == units,
            "{command} of another cluster restarted something"
        );
    }
    let without_file = ctx.on_host(
        site.control_plane(),
        "cat >/tmp/kk; chmod 755 /tmp/kk; cd /tmp; exec /tmp/kk delete cluster -y",
    );
    let run = ctx.run("kk-on-host", without_file.stdin_file(&ctx.tools.kk));
    ctx.host(site.control_plane(), "rm -rf /tmp/kk /tmp/kubekey")?;
    let run = run?;
    ensure!(run.code != Some(0), "a delete without a file on a control plane ended with code 0");
    ensure!(run.stderr.contains(&format!("cluster {name}")), "it does not say what it saw: {}", run.stderr);
    fs::remove_file(&staging.file)?;
    ensure!(checks::invocations(ctx, &site)? == units, "a delete that was refused restarted something");
    checks::cluster_is_complete(ctx, &site)
}
