//! Exports and pushes that are killed at fifty random moments have the same result as undisturbed ones: the bundle is the same,
//! byte by byte, and every blob of the registry matches its digest.

use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher as _;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;

use super::{job, kk, text};
use crate::context::Context;
use crate::process::Job;
use crate::registry::{Registry, USER};
use crate::report;
use crate::site::Site;

/// How many of each; another number by this variable.
const KILLS: u32 = 25;
const KILLS_VARIABLE: &str = "KK_E2E_KILLS";

pub(in super::super) fn run(ctx: &Context<'_>) -> Result<()> {
    let kills = std::env::var(KILLS_VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS);
    let site = Site::fresh(ctx, &ctx.dir.join("site"), 1, None)?;
    let place = |name: &str| text(&site.dir.join(name));
    let (manifest, whole, bundle) = (place("manifest.yaml"), place("whole.tar.zst"), place("bundle.tar.zst"));
    kk(ctx, &site, &["create", "manifest", "-f", &text(&site.file), "-o", &manifest])?.ok()?;
    let export = |to: &str, stock: &str| {
        job(ctx, &site, &["artifact", "export", "-m", &manifest, "-o", to, "--workdir", stock])
    };
    let calm = ctx.run("export", export(&whole, "calm"))?;
    let longest = calm.took;
    calm.ok()?;

    let export_again = || -> Result<()> {
        fs::remove_file(&bundle)?;
        Ok(fs::remove_dir_all(site.dir.join("stock"))?)
    };
    let killing = Killing { ctx, what: "export", times: kills, longest };
    killing.run(|| export(&bundle, "stock"), export_again)?;
    // The last one may have got through.
    ctx.run("export", export(&bundle, "stock"))?.ok()?;
    ctx.run("compare", Job::new("cmp").args([&whole, &bundle]))?.ok()?;
    nothing_is_half_written(&site.dir)?;

    let private = site.variant("private", |cluster| super::super::registry::uses(cluster, USER.1))?;
    let file = text(&private.file);
    let words = ["artifact", "images", "push", "-f", &file, "-a", &bundle, "--allow-unsigned"];
    let push = || job(ctx, &site, &words);
    let registry = RefCell::new(Some(Registry::empty(ctx)?));
    let push_again = || -> Result<()> {
        // The one before has to leave the port.
        registry.take();
        registry.replace(Some(Registry::empty(ctx)?));
        Ok(())
    };
    let calm = ctx.run("push", push())?;
    let longest = calm.took;
    calm.ok()?;
    push_again()?;
    let killing = Killing { ctx, what: "push", times: kills, longest };
    killing.run(push, push_again)?;
    ctx.run("push", push())?.ok()?;
    registry.borrow().as_ref().context("no registry")?.expect_whole(ctx)
}

/// Runs something that is killed at random moments.
struct Killing<'a> {
    ctx: &'a Context<'a>,
    what: &'static str,
    times: u32,
    /// Duration of an undisturbed run: the random moments are within it.
    longest: Duration,
}

impl Killing<'_> {
    /// Errors: a run fails by itself.
    fn run(&self, job: impl Fn() -> Job, begin_again: impl Fn() -> Result<()>) -> Result<()> {
        let longest = u64::try_from(self.longest.as_millis())?.max(1);
        let mut through = 0;
        for number in 0..self.times {
            let into = Duration::from_millis(RandomState::new().hash_one(number) % longest);
            let mut running = self.ctx.start(&format!("{}-killed", self.what), job())?;
            sleep(into);
            if !running.has_ended()? {
                running.signal(Signal::KILL)?;
            }
            let finished = running.wait()?;
            if finished.code.is_some() {
                finished.ok().with_context(|| format!("after {number} kills"))?;
                through += 1;
                begin_again()?;
            }
        }
        let Self { what, times, .. } = self;
        report::line(&format!(
            "  {what}: {} of {times} killed, the others got through before",
            times - through
        ));
        Ok(())
    }
}

/// There are only the two bundles, no third one, complete or partial.
fn nothing_is_half_written(directory: &Path) -> Result<()> {
    let entries: Result<Vec<_>, _> =
        fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.file_name())).collect();
    let mut bundles: Vec<String> =
        entries?.into_iter().map(|name| name.to_string_lossy().into_owned()).collect();
    bundles.retain(|name| name.contains(".tar"));
    bundles.sort();
    ensure!(bundles == ["bundle.tar.zst", "whole.tar.zst"], "these lie there: {bundles:?}");
    Ok(())
}
