//! The image of ks-installer, as `make image-ks` builds it, with a payload and the lab's helm.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::context::Context;
use crate::process::Job;

/// Builds it with the lab's payload; gives the archive.
pub(super) fn image(ctx: &Context<'_>) -> Result<PathBuf> {
    let payload = ctx.dir.join("payload");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/ks-payload");
    ctx.run("copy", Job::new("cp").args(["-r".into(), source, payload.clone()]))?.ok()?;
    let index = ["--version", "lab", "--kubesphere", "v3.4.1-stand-in"];
    pack(ctx, &payload, &index.map(OsString::from))
}

/// The same with a payload that is made of a release.
pub(super) fn of_release(ctx: &Context<'_>, release: &Path) -> Result<PathBuf> {
    pack(ctx, &ctx.dir.join("payload"), &["--version".into(), "lab".into(), "--from".into(), release.into()])
}

/// Builds the payload with these words, and an image with it.
fn pack(ctx: &Context<'_>, payload: &Path, words: &[OsString]) -> Result<PathBuf> {
    let program = ctx.tools.kk.with_file_name("ks-installer");
    ensure!(program.exists(), "{} is not there\nhint: `make build`", program.display());
    let job = ctx.lab_job(&["mirror", "build", "--programs", "helm"]).limit(Duration::from_mins(10));
    let said = ctx.run("helm", job)?.ok()?;
    let (_, directory) = said.trim().split_once('\t').context("kk-lab names no directory of programs")?;
    let helm = Path::new(directory).join("helm");

    let job = Job::new(&program).args(["payload", "build"]).args([payload]).args(words.iter().cloned());
    ctx.run("payload", job)?.ok()?;
    let directory = ctx.tools.artefacts.join("../image");
    let base = directory.join("ks-base.tar");
    ctx.run("base", Job::new("bash").args([&deploy().join("base.sh"), &base]).limit(Duration::from_mins(3)))?
        .ok()?;
    let job = Job::new("bash").args([&deploy().join("../image/build.sh"), &program, &directory]);
    let job = job.env("BASE", &base).env("FILES", deploy().join("files.sh")).env("COMMAND", "run");
    let job = job.env("HELM", &helm).env("PAYLOAD", payload);
    ctx.run("image", job.limit(Duration::from_mins(5)))?.ok()?;
    Ok(directory.join("ks-installer.tar"))
}

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/ks-installer")
}
