//! `kubeadm init` cannot succeed: the error names the cause, etcd keeps its data, the next create succeeds.

use anyhow::{Context as _, Result, ensure};

use crate::checks;
use crate::context::Context;
use crate::kk::KkRun;
use crate::registry::Registry;
use crate::site::Site;

/// The scheduler's port, which is occupied after the precheck has found it free.
const PORT: u16 = 10259;
const IMAGE: &str = "kube-controller-manager";

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let site = Site::fresh(ctx, &ctx.dir.join("site"), 3, None)?;
    port_is_taken(ctx, &site).context("a taken port")?;
    ctx.kk_ok(&site, "delete", &["--all"])?;
    image_is_gone(ctx, &site).context("an image that is gone")
}

fn port_is_taken(ctx: &Context<'_>, site: &Site) -> Result<()> {
    let mut kk = ctx.kk_start(site, "create", &[])?;
    ctx.await_task(&mut kk, "etcd/start_etcd")?;
    let listener = ctx.occupy(site.control_plane(), PORT)?;
    let run = KkRun::of(kk)?;
    run.expect_code(1)?.expect_said(&[&PORT.to_string(), "port", site.control_plane()])?;
    let identity = checks::etcd_identity(ctx, site).context("etcd after the failed init")?;
    drop(listener);
    succeeds_with_the_same_etcd(ctx, site, &identity)
}

fn image_is_gone(ctx: &Context<'_>, site: &Site) -> Result<()> {
    let registry = Registry::copy(ctx)?;
    registry.forget(IMAGE)?;
    let lacking = site.variant("lacking", Registry::use_in)?;
    let run = ctx.kk(&lacking, "create", &[])?;
    run.expect_code(1)?.expect_said(&[IMAGE, "not found", site.control_plane()])?;
    let identity = checks::etcd_identity(ctx, site).context("etcd after the failed run")?;
    drop(registry);
    succeeds_with_the_same_etcd(ctx, site, &identity)
}

fn succeeds_with_the_same_etcd(ctx: &Context<'_>, site: &Site, identity: &str) -> Result<()> {
    ctx.kk_ok(site, "create", &[]).context("create after the cause is gone")?;
    checks::cluster_is_complete(ctx, site)?;
    let now = checks::etcd_identity(ctx, site)?;
    ensure!(now == identity, "etcd is another one: {identity} -> {now}");
    Ok(())
}
