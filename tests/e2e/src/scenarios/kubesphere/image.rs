//! The image of ks-installer, as `make image-ks` builds it, with a payload and the lab's helm.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::context::Context;
use crate::process::Job;

/// Building programs of the full payload takes minutes, when the mirror has none yet.
const PROGRAMS_LIMIT: Duration = Duration::from_mins(15);

/// The payload that the image can install.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    /// `tests/lab/ks-payload`.
    StandIns,
    /// `tests/lab/ks-payload-full`.
    Full,
}

impl Payload {
    /// Its path in the source.
    pub(super) fn source(self) -> PathBuf {
        let name = match self {
            Self::StandIns => "ks-payload",
            Self::Full => "ks-payload-full",
        };
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab").join(name)
    }

    /// Components whose definitions of kinds it needs.
    fn upstream(self) -> &'static [&'static str] {
        match self {
            Self::StandIns => &[],
            Self::Full => &["prometheus-operator", "snapshot-controller"],
        }
    }
}

/// Builds it with a payload of the lab; returns the archive.
pub(super) fn image(ctx: &Context<'_>, kind: Payload) -> Result<PathBuf> {
    let programs = programs(ctx, &[&["helm"], kind.upstream()].concat())?;
    let payload = ctx.dir.join("payload");
    ctx.run("copy", Job::new("cp").args(["-r".into(), kind.source(), payload.clone()]))?.ok()?;
    for name in kind.upstream() {
        let to = payload.join("upstream").join(name);
        std::fs::create_dir_all(payload.join("upstream"))?;
        ctx.run("copy", Job::new("cp").args(["-r".into(), programs[*name].join("crds"), to]))?.ok()?;
    }
    let index = ["--version", "lab", "--kubesphere", super::VERSION];
    pack(ctx, &programs["helm"], &payload, &index.map(OsString::from))
}

/// The same with a payload that is made of a release.
pub(super) fn of_release(ctx: &Context<'_>, release: &Path) -> Result<PathBuf> {
    let programs = programs(ctx, &["helm"])?;
    let words = ["--version".into(), "lab".into(), "--from".into(), release.into()];
    pack(ctx, &programs["helm"], &ctx.dir.join("payload"), &words)
}

/// Builds the payload with these arguments, and an image with it and with helm of this directory.
fn pack(ctx: &Context<'_>, helm: &Path, payload: &Path, words: &[OsString]) -> Result<PathBuf> {
    let program = ctx.tools.kk.with_file_name("ks-installer");
    ensure!(program.exists(), "{} is not there\nhint: `make build`", program.display());
    let job = Job::new(&program).args(["payload", "build"]).args([payload]).args(words.iter().cloned());
    ctx.run("payload", job)?.ok()?;
    let directory = ctx.tools.images();
    let base = directory.join("ks-base.tar");
    ctx.run("base", Job::new("bash").args([&deploy().join("base.sh"), &base]).limit(Duration::from_mins(3)))?
        .ok()?;
    let job = Job::new("bash").args([&deploy().join("../image/build.sh"), &program, &directory]);
    let job = job.env("BASE", &base).env("FILES", deploy().join("files.sh")).env("COMMAND", "run");
    let job = job.env("HELM", helm.join("helm")).env("PAYLOAD", payload);
    ctx.run("image", job.limit(Duration::from_mins(5)))?.ok()?;
    Ok(directory.join("ks-installer.tar"))
}

/// Directories of components' programs, built where the mirror has none.
fn programs(ctx: &Context<'_>, components: &[&str]) -> Result<BTreeMap<String, PathBuf>> {
    let job = ctx.lab_job(&["mirror", "build", "--programs", &components.join(",")]).limit(PROGRAMS_LIMIT);
    let said = ctx.run("programs", job)?.ok()?;
    let found: Option<BTreeMap<String, PathBuf>> = said
        .trim()
        .lines()
        .map(|line| line.split_once('\t'))
        .map(|found| found.map(|(name, directory)| (name.into(), directory.into())))
        .collect();
    let found = found.context("kk-lab names no directory of programs")?;
    let missing: Vec<_> = components.iter().filter(|name| !found.contains_key(**name)).collect();
    ensure!(missing.is_empty(), "kk-lab names no directory of {missing:?}");
    Ok(found)
}

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/ks-installer")
}
