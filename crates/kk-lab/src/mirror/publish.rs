//! Publishes programs and archives as upstream lays them out, their checksums, and images. Files that are already published (by
//! their key) are left unchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

use crate::base;
use crate::mirror::debian;
use crate::mirror::image::{Files, Source, Storage, add_file};
use crate::mirror::programs::{self, Programs};
use crate::mirror::slice;
use crate::mirror::versions::{Build, Image, MirrorFile, Versions, arch};
use crate::sys::files::{unfinished, write_whole};
use crate::sys::paths::Paths;
use crate::sys::run::output;
use crate::sys::{disk, hash, say};

/// component → arch → version → SHA-256: the form of kk's own catalogue.
type Catalogue = BTreeMap<String, BTreeMap<String, BTreeMap<String, String>>>;
type AllPrograms = BTreeMap<(String, String), Programs>;

/// The record of a published item.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    /// Of everything it was made from.
    key: String,
    catalogue: Catalogue,
}

/// Where the checksum catalogue of the mirror is.
pub(crate) fn catalogue_file(paths: &Paths) -> PathBuf {
    paths.mirror().join("catalogue.yaml")
}

/// Builds and publishes everything for these Kubernetes versions, and these components that are built on demand; nothing is
/// done twice.
pub(crate) fn build(
    paths: &Paths,
    versions: &Versions,
    kubernetes: &[String],
    with: &[String],
) -> Result<()> {
    let builds = versions.builds(&paths.data, kubernetes, with)?;
    let (name, key) = whole(paths, &builds, kubernetes, with)?;
    if record(paths, &name).key == key && catalogue_file(paths).exists() {
        // If nothing has to be built, do not wait for another build.
        let alone = paths.try_lock("build")?;
        return alone.map_or(Ok(()), |_alone| programs::clear_go_caches(paths, &builds));
    }
    let _alone = paths.lock("build")?;
    disk::ensure_free(&paths.cache, disk::for_cache() / 4, "the mirror")?;
    let programs = programs::ensure(paths, versions, &builds)?;
    let base = base::tree::ensure(paths, base::SUITE)?;
    for build in &builds {
        publish_files(paths, build, &programs)?;
    }
    publish_images(paths, versions, kubernetes, &programs, &base)?;
    write_catalogue(paths)?;
    keep(paths, &name, &Record { key, catalogue: Catalogue::new() })?;
    say::progress("the mirror is there");
    programs::clear_go_caches(paths, &builds)
}

/// The name and the key of the record that all of this is published.
fn whole(
    paths: &Paths,
    builds: &[Build],
    kubernetes: &[String],
    with: &[String],
) -> Result<(String, String)> {
    let name = format!("all-{}", [kubernetes, with].concat().join("-"));
    let key = hash::of_text(&format!("{} {}", programs::key_of_all(paths, builds)?, slice::recipe()));
    Ok((name, key))
}

fn publish_files(paths: &Paths, build: &Build, programs: &AllPrograms) -> Result<()> {
    let name = format!("{}-{}", build.component, build.version);
    let made = &programs[&(build.component.clone(), build.version.clone())];
    let key = hash::of_text(&format!("{} {:?}", made.key, build.files));
    let there = build.files.iter().all(|file| paths.mirror().join(&file.path).exists());
    if build.files.is_empty() || (there && record(paths, &name).key == key) {
        return Ok(());
    }
    say::progress(&format!("publishing {} {}", build.component, build.version));
    let mut catalogue = Catalogue::new();
    for file in &build.files {
        let sum = publish_file(&paths.mirror().join(&file.path), file, made)?;
        let archs = catalogue.entry(file.component.clone()).or_default();
        archs.entry(arch().to_owned()).or_default().insert(build.version.clone(), sum);
    }
    keep(paths, &name, &Record { key, catalogue })
}

/// Puts one file into the mirror, and its `.sha256` into the same directory, as dl.k8s.io does. Returns its checksum.
fn publish_file(target: &Path, file: &MirrorFile, made: &Programs) -> Result<String> {
    fs::create_dir_all(target.parent().context("a file has a directory")?)?;
    let unfinished = unfinished(target)?;
    if let Some(program) = &file.program {
        fs::hard_link(made.path(program)?, &unfinished)?;
    } else {
        let gzip = GzEncoder::new(BufWriter::new(File::create(&unfinished)?), Compression::fast());
        let mut tar = tar::Builder::new(gzip);
        for (program, path) in &file.archive {
            add_file(&mut tar, path, &made.path(program)?)?;
        }
        tar.into_inner()?.finish()?.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    }
    let sum = hash::of_file(&unfinished)?;
    // Renaming onto another link of the same file does nothing and keeps both names, so the old name is removed first.
    let _ = fs::remove_file(target);
    fs::rename(&unfinished, target)?;
    let mut beside = target.as_os_str().to_owned();
    beside.push(".sha256");
    write_whole(Path::new(&beside), sum.as_bytes())?;
    Ok(sum)
}

fn publish_images(
    paths: &Paths,
    versions: &Versions,
    kubernetes: &[String],
    programs: &AllPrograms,
    base: &Path,
) -> Result<()> {
    let mut wanted_tags = BTreeMap::new();
    for version in kubernetes {
        let kubeadm = programs[&("kubernetes".to_owned(), version.clone())].path("kubeadm")?;
        for (repository, tag) in images_of(&kubeadm, version)? {
            wanted_tags.entry(repository).or_insert_with(BTreeSet::new).insert(tag);
        }
    }
    let mut slice = None;
    for image in &versions.images {
        let own: Vec<String> = match image.component.as_str() {
            "kubernetes" => kubernetes.to_vec(),
            "pause" => vec![versions.pause.clone()],
            other => vec![versions.version(other)?.to_owned()],
        };
        for version in own {
            let Some(made) = programs.get(&(image.component.clone(), version.clone())) else {
                // Components that are built on demand may not have been requested.
                ensure!(
                    versions.on_demand().contains(&image.component),
                    "{} {version} was not built",
                    image.component
                );
                continue;
            };
            let has_bare_version = image.component == "pause" || image.files.is_empty();
            let mut tags =
                BTreeSet::from([if has_bare_version { version.clone() } else { format!("v{version}") }]);
            if image.component != "kubernetes" {
                tags.extend(
                    image.repositories.iter().filter_map(|name| wanted_tags.get(name)).flatten().cloned(),
                );
            }
            publish_image(paths, image, &version, tags, made, base, &mut slice)?;
        }
    }
    Ok(())
}

fn publish_image(
    paths: &Paths,
    image: &Image,
    version: &str,
    mut tags: BTreeSet<String>,
    made: &Programs,
    base: &Path,
    slice: &mut Option<Files>,
) -> Result<()> {
    let name = format!("image-{}-{version}", image.repositories[0].replace('/', "-"));
    let before = record(paths, &name);
    // The slice below the program is part of the image: another slice is another image.
    let below = if image.slice { slice::recipe() } else { String::new() };
    let made_from = hash::of_text(&format!("{} {image:?} {}{below}", made.key, base.display()));
    // Tags that another Kubernetes version required earlier stay: their list is the second half of the key.
    let (old_from, old_tags) = before.key.split_once(' ').unwrap_or_default();
    let storage = Storage::new(&paths.registry());
    if old_from == made_from && storage.has(&image.repositories) {
        let old: BTreeSet<String> = old_tags.split(' ').map(str::to_owned).collect();
        if tags.is_subset(&old) {
            return Ok(());
        }
        tags.extend(old);
    }
    say::progress(&format!("publishing image {} {version}", image.repositories[0]));
    let mut files = Files::new();
    if image.slice {
        if slice.is_none() {
            *slice = Some(slice::cut(base)?);
        }
        files.clone_from(slice.as_ref().unwrap_or(&Files::new()));
    }
    if image.files.is_empty() {
        files = debian::files(&made.directory)?;
    }
    for (program, path) in &image.files {
        files.insert(path.clone(), Source::File(made.path(program)?));
    }
    storage.add(&image.repositories, &tags, &image.entrypoint()?, &files)?;
    let key = format!("{made_from} {}", tags.into_iter().collect::<Vec<_>>().join(" "));
    keep(paths, &name, &Record { key, catalogue: Catalogue::new() })
}

/// Repository and tag of every image that this kubeadm requires, without the registry's name.
fn images_of(kubeadm: &Path, version: &str) -> Result<Vec<(String, String)>> {
    let words = ["config", "images", "list", "--kubernetes-version", &format!("v{version}")];
    let said = output(Command::new(kubeadm).args(words))?;
    Ok(said.lines().filter_map(split_image).collect())
}

fn split_image(line: &str) -> Option<(String, String)> {
    let (_, rest) = line.trim().split_once('/')?;
    let (repository, tag) = rest.rsplit_once(':')?;
    Some((repository.to_owned(), tag.to_owned()))
}

fn record_file(paths: &Paths, name: &str) -> PathBuf {
    paths.published().join(format!("{name}.json"))
}

/// The record of what was published under this name; empty if there is no readable record.
fn record(paths: &Paths, name: &str) -> Record {
    let text = fs::read(record_file(paths, name)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn keep(paths: &Paths, name: &str, record: &Record) -> Result<()> {
    write_whole(&record_file(paths, name), serde_json::to_string_pretty(record)?.as_bytes())
}

/// The catalogue holds everything published until now, also by earlier runs for other Kubernetes versions.
fn write_catalogue(paths: &Paths) -> Result<()> {
    let mut all = Catalogue::new();
    for entry in fs::read_dir(paths.published())? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        for (component, archs) in record(paths, &name).catalogue {
            for (arch, versions) in archs {
                all.entry(component.clone()).or_default().entry(arch).or_default().extend(versions);
            }
        }
    }
    write_whole(&catalogue_file(paths), serde_saphyr::to_string(&all)?.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_with_nothing_to_do_clears_what_an_interrupted_one_has_left_unless_another_one_runs() {
        let directory = tempfile::tempdir().unwrap();
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lab");
        let paths = Paths { cache: directory.path().to_owned(), data };
        let versions = Versions::load(&paths.data).unwrap();
        let kubernetes = versions.chosen(&[]).unwrap();
        let builds = versions.builds(&paths.data, &kubernetes, &[]).unwrap();
        for made in programs::directories(&paths, &versions, &builds).unwrap() {
            fs::create_dir_all(made).unwrap();
        }
        let (name, key) = whole(&paths, &builds, &kubernetes, &[]).unwrap();
        keep(&paths, &name, &Record { key, catalogue: Catalogue::new() }).unwrap();
        write_whole(&catalogue_file(&paths), b"").unwrap();
        let caches = programs::go_caches(&paths);
        fs::create_dir_all(caches.join("mod")).unwrap();
        // Waiting for this lock would not end.
        let other = paths.lock("build").unwrap();
        build(&paths, &versions, &kubernetes, &[]).unwrap();
        assert!(caches.exists());
        drop(other);
        build(&paths, &versions, &kubernetes, &[]).unwrap();
        assert!(!caches.exists());
    }

    #[test]
    fn image_names_lose_their_registry() {
        let split = |line| split_image(line);
        assert_eq!(split("registry.k8s.io/pause:3.10.2"), Some(("pause".into(), "3.10.2".into())));
        assert_eq!(
            split("registry.k8s.io/coredns/coredns:v1.14.2\n"),
            Some(("coredns/coredns".into(), "v1.14.2".into()))
        );
        assert_eq!(split(""), None);
    }
}
