//! Images from a bundle into a registry of the user's, by pushes that are killed, and a cluster that pulls from there only.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::offline::{add_own_images, kk, text};
use crate::checks;
use crate::context::Context;
use crate::kk::KkRun;
use crate::process::Job;
use crate::registry::{Registry, USER};
use crate::site::Site;

/// Exports and pushes on a busy machine.
const LIMIT: Duration = Duration::from_mins(6);

pub(super) fn run(ctx: &Context<'_>) -> Result<()> {
    let site = Site::fresh(ctx, &ctx.dir.join("site"), 2, None)?;
    let (manifest, bundle) = (text(&site.dir.join("manifest.yaml")), text(&site.dir.join("bundle.tar.zst")));
    kk(ctx, &site, &["create", "manifest", "-f", &text(&site.file), "-o", &manifest])?.ok()?;
    let own = add_own_images(ctx.tools.lab, site.dir.join("manifest.yaml").as_path())?;
    kk(ctx, &site, &["artifact", "export", "-m", &manifest, "-o", &bundle, "--workdir", "stock"])?.ok()?;
    let registry = Registry::empty(ctx)?;
    let private = site.variant("private", |cluster| uses(cluster, USER.1))?;
    wrong_password(ctx, &site, &bundle, &registry)?;
    killed_and_pushed(ctx, &private, &bundle, &registry)?;
    // The file names only the private registry: hosts have no other place to pull from.
    ctx.kk(&private, "create", &[])?.expect_code(0)?;
    checks::cluster_is_complete(ctx, &private)?;
    for own in own {
        let name = own.name.replacen("docker.io", &Registry::address(), 1);
        ctx.host(private.control_plane(), &format!("crictl pull {name}"))?;
    }
    ensure!(
        ctx.kk(&private, "create", &[])?.expect_code(0)?.events.changes().is_empty(),
        "the second create changed something"
    );
    Ok(())
}

/// Lets a file use the private registry and nothing else for images.
pub(super) fn uses(cluster: &mut Value, password: &str) {
    let registry = &mut cluster["spec"]["registry"];
    let mut auth =
        registry["auths"].as_object().and_then(|auths| auths.values().next().cloned()).unwrap_or_default();
    (auth["username"], auth["password"]) = (json!(USER.0), json!(password));
    *registry = json!({"privateRegistry": Registry::address(), "auths": {Registry::address(): auth}});
}

/// A wrong password is reported, and nothing is pushed.
fn wrong_password(ctx: &Context<'_>, site: &Site, bundle: &str, registry: &Registry) -> Result<()> {
    let wrong = site.variant("wrong", |cluster| uses(cluster, "not-this-one"))?;
    let push = push(ctx, &wrong, bundle)?;
    push.expect_code(1)?
        .expect_said(&["it refuses the user name or the password (401)", "spec.registry.auths"])?;
    ensure!(!push.said().contains("not-this-one"), "the password was shown");
    ensure!(registry.blobs()?.is_empty(), "a push without the password has brought something");
    Ok(())
}

/// A push that is killed twice on its way, each time after more complete blobs arrived in the registry; the third push sends only
/// the missing ones, and the fourth nothing.
fn killed_and_pushed(ctx: &Context<'_>, site: &Site, bundle: &str, registry: &Registry) -> Result<()> {
    for kill in 1..=2 {
        let before = registry.blobs()?.len();
        let mut running = ctx.start("push-killed", job(ctx, site, bundle))?;
        ctx.until("the push sends", LIMIT, || {
            Ok((running.has_ended()? || registry.blobs()?.len() > before + 1).then_some(()))
        })?;
        ensure!(!running.has_ended()?, "push {kill} ended before it was killed");
        running.signal(Signal::KILL)?;
        running.wait()?;
    }
    let kept = registry.blobs()?;
    push(ctx, site, bundle)?.expect_code(0)?;
    let all = registry.blobs()?;
    ensure!(all.len() > kept.len(), "the killed pushes had sent everything");
    for (blob, changed) in kept {
        ensure!(all.get(&blob) == Some(&changed), "{} was sent again", blob.display());
    }
    let again = push(ctx, site, bundle)?;
    again.expect_code(0)?;
    ensure!(again.events.changes().is_empty(), "the second push changed something");
    Ok(())
}

fn job(ctx: &Context<'_>, site: &Site, bundle: &str) -> Job {
    let file = text(&site.file);
    let words =
        ["artifact", "images", "push", "-f", &file, "-a", bundle, "--allow-unsigned", "--format", "json"];
    super::offline::job(ctx, site, &words)
}

fn push(ctx: &Context<'_>, site: &Site, bundle: &str) -> Result<KkRun> {
    KkRun::of(ctx.start("push", job(ctx, site, bundle))?).context("cannot push")
}
