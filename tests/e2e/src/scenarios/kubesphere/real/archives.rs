//! Archives of images (`docker save`) that the user provides: the names in them, and which of them are stand-ins.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::checks;
use crate::context::Context;
use crate::process::Job;
use crate::registry::Registry;
use crate::site::Site;

/// A file next to the archives with names of images, one per line. The binaries in these images are not of the version in the name.
const STAND_INS: &str = "stand-ins.txt";
/// For reading or pushing one archive.
const LIMIT: Duration = Duration::from_mins(10);
const PUSH: &str = include_str!("push.sh");

/// The archives in a directory. Names of images are without registry, and without the namespace `library`.
pub(super) struct Archives {
    files: Vec<PathBuf>,
    /// The name of the archive for each image.
    held: BTreeMap<String, String>,
    stand_ins: BTreeSet<String>,
}

impl Archives {
    /// Reads the names of all images in `*.tar`. Errors: a file is not an archive of `docker save`, or a stand-in is in no archive.
    pub(super) fn open(ctx: &Context<'_>, directory: &Path) -> Result<Self> {
        let entries =
            fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "tar"));
        files.sort();
        ensure!(!files.is_empty(), "{} has no archive of an image (*.tar)", directory.display());
        let mut held = BTreeMap::new();
        for file in &files {
            let job = Job::new("tar").args(["-xO", "-f"]).args([file]).args(["manifest.json"]).limit(LIMIT);
            let no_archive = || format!("{} is not an archive of `docker save`", file.display());
            let manifest = ctx.run("manifest", job)?.ok().with_context(no_archive)?;
            let names = names_in(&manifest).with_context(no_archive)?;
            ensure!(!names.is_empty(), "{} has no image with a name", file.display());
            let archive = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            held.extend(names.into_iter().map(|name| (name, archive.clone())));
        }
        let stand_ins = match fs::read_to_string(directory.join(STAND_INS)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            read => read.with_context(|| format!("cannot read {STAND_INS}"))?,
        };
        let archives = Self { files, held, stand_ins: listed(&stand_ins) };
        let unknown = archives.missing(&archives.stand_ins);
        ensure!(
            unknown.is_empty(),
            "{STAND_INS} lists images that are in no archive: {}",
            unknown.join(", ")
        );
        Ok(archives)
    }

    /// The images that are in no archive.
    pub(super) fn missing(&self, needed: &BTreeSet<String>) -> Vec<String> {
        needed.iter().filter(|image| !self.held.contains_key(*image)).cloned().collect()
    }

    /// The needed images that are stand-ins.
    pub(super) fn stand_ins(&self, needed: &BTreeSet<String>) -> Vec<String> {
        needed.intersection(&self.stand_ins).cloned().collect()
    }

    /// Whether an image is real, a stand-in or missing, and its archive.
    pub(super) fn describe(&self, image: &str) -> String {
        match self.held.get(image) {
            None => "missing".to_owned(),
            Some(archive) if self.stand_ins.contains(image) => format!("stand-in, in {archive}"),
            Some(archive) => format!("real, in {archive}"),
        }
    }

    /// Sends all images into the registry.
    pub(super) fn push(&self, ctx: &Context<'_>, site: &Site) -> Result<()> {
        for archive in &self.files {
            let script = format!("REGISTRY={}\n{PUSH}", Registry::address());
            let job = ctx.on_host(site.control_plane(), &script).stdin_file(archive).limit(LIMIT);
            let pushed = ctx.run("push", job)?.ok();
            let pushed =
                pushed.with_context(|| format!("cannot push the images in {}", archive.display()))?;
            ensure!(!pushed.trim().is_empty(), "no image in {} has a name", archive.display());
        }
        Ok(())
    }
}

/// The names of images in the `manifest.json` of an archive.
fn names_in(manifest: &str) -> Result<Vec<String>> {
    let manifest: Value = serde_json::from_str(manifest)?;
    let images = manifest.as_array().context("manifest.json is not a list")?;
    let tags = images.iter().flat_map(|image| image["RepoTags"].as_array().into_iter().flatten());
    Ok(tags.map(|tag| in_registry(&checks::text(tag))).collect())
}

/// The names in a text with one name a line. `#` begins a comment.
fn listed(text: &str) -> BTreeSet<String> {
    let names = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    names.filter(|name| !name.is_empty()).map(in_registry).collect()
}

/// The name of an image without its registry and the namespace `library`, as `push.sh` names it.
pub(super) fn in_registry(image: &str) -> String {
    let path = match image.split_once('/') {
        Some((host, path)) if host == "localhost" || host.contains(['.', ':']) => path,
        _ => image,
    };
    path.strip_prefix("library/").unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_images_are_compared_without_their_registry() {
        for (name, expected) in [
            ("kubesphere/ks-apiserver:v3.4.1", "kubesphere/ks-apiserver:v3.4.1"),
            ("docker.io/kubesphere/ks-apiserver:v3.4.1", "kubesphere/ks-apiserver:v3.4.1"),
            ("172.30.0.1:5001/prom/prometheus:v2.39.1", "prom/prometheus:v2.39.1"),
            ("localhost/alpine:3.14", "alpine:3.14"),
            ("docker.io/library/alpine:3.14", "alpine:3.14"),
            ("alpine:3.14", "alpine:3.14"),
        ] {
            assert_eq!(in_registry(name), expected);
        }
    }

    #[test]
    fn the_manifest_of_an_archive_names_its_images() {
        let manifest = r#"[{"Config": "a.json", "RepoTags": ["docker.io/library/redis:5", "a/b:1"]}, {"RepoTags": null}]"#;
        assert_eq!(names_in(manifest).unwrap(), ["redis:5", "a/b:1"]);
        assert!(names_in("{}").is_err());
    }

    #[test]
    fn an_image_is_real_unless_it_is_listed_as_a_stand_in() {
        let held =
            [("a/b:1", "one.tar"), ("c/d:1", "two.tar")].map(|(name, file)| (name.into(), file.into()));
        let stand_ins = listed("# busybox\n\ndocker.io/c/d:1 # httpd\n");
        let archives = Archives { files: Vec::new(), held: BTreeMap::from(held), stand_ins };
        for (image, expected) in
            [("a/b:1", "real, in one.tar"), ("c/d:1", "stand-in, in two.tar"), ("e/f:1", "missing")]
        {
            assert_eq!(archives.describe(image), expected);
        }
        let needed = BTreeSet::from(["a/b:1", "c/d:1", "e/f:1"].map(str::to_owned));
        assert_eq!(archives.missing(&needed), ["e/f:1"]);
        assert_eq!(archives.stand_ins(&needed), ["c/d:1"]);
    }
}
