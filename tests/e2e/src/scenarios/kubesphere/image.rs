//! The image of ks-installer, as `make image-ks` builds it, with a payload and the lab's helm.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::checks;
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
        fs::create_dir_all(payload.join("upstream"))?;
        ctx.run("copy", Job::new("cp").args(["-r".into(), programs[*name].join("crds"), to]))?.ok()?;
    }
    let index = ["--version", "lab", "--kubesphere", super::VERSION];
    index_payload(ctx, &payload, &index.map(OsString::from))?;
    pack(ctx, &programs["helm"], &payload)
}

/// A payload that is made of a release.
pub(super) struct Release {
    payload: PathBuf,
    /// Directory of the helm binary.
    helm: PathBuf,
    /// Version of KubeSphere in it.
    pub(super) version: String,
}

impl Release {
    /// Builds the payload from an unpacked release. Errors: `payload build` does not know it.
    pub(super) fn build(ctx: &Context<'_>, release: &Path) -> Result<Self> {
        let helm = programs(ctx, &["helm"])?["helm"].clone();
        let payload = ctx.dir.join("payload");
        index_payload(ctx, &payload, &["--version".into(), "lab".into(), "--from".into(), release.into()])?;
        let index = fs::read_to_string(payload.join("index.yaml")).context("the payload has no index")?;
        let index: Value = serde_saphyr::from_str(&index).context("the index of the payload is no YAML")?;
        let version = checks::text(&index["kubesphere"]);
        ensure!(!version.is_empty(), "the index of the payload names no version of KubeSphere");
        Ok(Self { payload, helm, version })
    }

    /// Builds the image of the operator with the payload; returns the archive.
    pub(super) fn image(&self, ctx: &Context<'_>) -> Result<PathBuf> {
        pack(ctx, &self.helm, &self.payload)
    }

    /// Whether the payload has a definition of this component.
    pub(super) fn has(&self, component: &str) -> bool {
        self.payload.join("components").join(component).with_extension("yaml").exists()
    }

    /// The images that `ks-installer images` lists for a document.
    pub(super) fn images(
        &self,
        ctx: &Context<'_>,
        document: &Value,
        kubernetes: &str,
    ) -> Result<BTreeSet<String>> {
        let file = ctx.dir.join("images.yaml");
        fs::write(&file, document.to_string())?;
        let job = Job::new(ks_installer(ctx)?).args(["images", "--kube-version", kubernetes, "--file"]);
        let job = job.args([&file, Path::new("--payload"), &self.payload]);
        let job = job.args([Path::new("--helm"), &self.helm.join("helm")]);
        Ok(ctx.run("images", job)?.ok()?.lines().map(str::to_owned).collect())
    }
}

fn ks_installer(ctx: &Context<'_>) -> Result<PathBuf> {
    let program = ctx.tools.kk.with_file_name("ks-installer");
    ensure!(program.exists(), "{} is not there\nhint: `make build`", program.display());
    Ok(program)
}

/// Runs `payload build` with these arguments.
fn index_payload(ctx: &Context<'_>, payload: &Path, words: &[OsString]) -> Result<()> {
    let job = Job::new(ks_installer(ctx)?).args(["payload", "build"]).args([payload]);
    ctx.run("payload", job.args(words.iter().cloned()))?.ok()?;
    Ok(())
}

/// Builds an image with the payload and with helm of this directory.
fn pack(ctx: &Context<'_>, helm: &Path, payload: &Path) -> Result<PathBuf> {
    let program = ks_installer(ctx)?;
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

/// Renders the chart of the lab's local volumes into objects of the namespace `default`.
pub(super) fn local_volumes(ctx: &Context<'_>) -> Result<String> {
    let helm = programs(ctx, &["helm"])?["helm"].join("helm");
    let chart = Payload::Full.source().join("charts/local-volumes");
    let job = Job::new(helm).args(["template", "local-volumes", "--namespace", "default"]).args([chart]);
    ctx.run("helm", job)?.ok()
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
