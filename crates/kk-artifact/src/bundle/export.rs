//! Exports a bundle: fetches missing content, then packs everything.
//!
//! Fetched content stays in the store's directory, so after a killed export the next one fetches only the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::StreamExt as _;
use futures::future::try_join_all;
use kk_config::Manifest;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::charts::Packed;
use super::delta::{self, Delta};
use super::index::{BLOBS, DELTA_NAME, LAYOUT_INDEX, NAME, blob_path};
use super::packages::Repository;
use super::sbom;
use super::write::{self, Source};
use super::{BundleIndex, Contents, FilePart, ImagePart, PlatformPart, ProgramPart, unusable};
use crate::charts::{self, Wanted};
use crate::oci::{self, Blobs, Fetch, Image, Registries};
use crate::packages::{Work, collect};
use crate::store::blocking;
use crate::{Artifact, Catalogue, Error, Progress, ProgressState, Store};

/// Files with binaries that are processed at once; the store limits concurrent transfers.
const PARALLEL_PROGRAMS: usize = 16;

/// A progress report of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportNews {
    /// The missing content is known.
    Missing {
        /// Bytes, as far as servers report them.
        bytes: u64,
    },
    /// Bytes were received.
    Came {
        /// Their number.
        bytes: u64,
    },
    /// An operation is retried.
    Note {
        /// The message.
        message: String,
    },
    /// All content is present, and packing begins.
    Packing {
        /// Bytes to pack.
        bytes: u64,
    },
    /// Bytes were packed.
    Packed {
        /// Their number.
        bytes: u64,
    },
}

/// An exported bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// Its index.
    pub index: BundleIndex,
    /// Bytes of the bundle.
    pub size: u64,
    /// Bytes that were fetched over the network.
    pub fetched: u64,
}

/// Exports the bundle of a Manifest to `path`; with a base, the delta from the base to it. Errors: all errors that can be found
/// at once.
pub async fn export(
    manifest: &Manifest,
    catalogue: &Catalogue,
    store: &Arc<Store>,
    path: &Path,
    base: Option<&BundleIndex>,
    news: &(dyn Fn(ExportNews) + Sync),
) -> Result<Exported, Vec<Error>> {
    let one = |error| vec![error];
    let fetched = AtomicU64::new(0);
    let news = &|one| {
        if let ExportNews::Came { bytes } = one {
            fetched.fetch_add(bytes, Ordering::Relaxed);
        }
        news(one);
    };
    let contents = Contents::of(manifest, catalogue)?;
    let blobs = Blobs::new(store.dir());
    let _alone = blobs.lock().await.map_err(one)?;
    let registries = Registries::new(manifest.registry.clone());
    let fetch = Fetch {
        registries: &registries,
        blobs: &blobs,
        came: &|bytes| news(ExportNews::Came { bytes }),
        note: &|message| news(ExportNews::Note { message }),
        configuration: tokio::sync::Mutex::default(),
    };
    let work = Work::new(store.dir()).map_err(one)?;
    let wanted = Wanted { charts: &contents.charts, files: &contents.manifests, mirror: catalogue.mirror() };
    let (files, images, systems, others) = tokio::join!(
        store.check_reachable(&contents.programs),
        oci::resolve(&fetch, &contents.images, &contents.arches),
        collect(&contents.operating_systems, &work, &blobs),
        charts::find(wanted, store, &fetch)
    );
    let (missing, found, systems, others) = match (files, images, systems, others) {
        (Ok(missing), Ok(found), Ok(systems), Ok(others)) => (missing, found, systems, others),
        (files, images, systems, others) => {
            let errors = [files.err(), images.err(), systems.err(), others.err()];
            return Err(errors.into_iter().flatten().flatten().collect());
        }
    };
    let of_images: u64 = oci::missing(&blobs, &found).iter().map(|(_, blob)| blob.size).sum();
    let of_systems: u64 = systems.iter().map(|system| system.missing()).sum();
    news(ExportNews::Missing { bytes: missing + of_images + of_systems + others.missing(&fetch) });
    let came = |bytes| news(ExportNews::Came { bytes });
    let packages = async {
        try_join_all(systems.iter().map(|system| system.fetch(&came))).await?;
        Repository::all(&systems).await
    };
    let (files, images, packages, others) = tokio::join!(
        fetch_programs(store, &contents.programs, news),
        oci::fetch_blobs(&fetch, &found),
        packages,
        others.fetch(store, &fetch)
    );
    let (packages, (charts, manifests)) = match (files, images, packages, others) {
        (Ok(()), Ok(()), Ok(packages), Ok(others)) => (packages, others),
        (files, images, packages, others) => {
            let errors = [files.err(), images.err(), packages.err(), others.err()];
            return Err(errors.into_iter().flatten().collect());
        }
    };
    let packed = Packed::of(&charts, &manifests, &blobs).map_err(one)?;
    let images: Vec<Image> = found.into_iter().map(|found| found.image).collect();
    let (index, sources) =
        describe(&contents, &images, (packages, packed), store, &blobs, path).map_err(one)?;
    let delta = base.map(|base| Delta::between(base, index.clone()));
    let missing: Option<BTreeSet<String>> =
        base.map(|base| delta::missing(base, &index).map(|file| file.path.clone()).collect());
    let is_packed = |file: &FilePart| missing.as_ref().is_none_or(|missing| missing.contains(&file.path));
    let files: Vec<_> =
        index.files.iter().cloned().zip(sources).filter(|(file, _)| is_packed(file)).collect();
    let bytes = files.iter().map(|(file, _)| file.size).sum();
    news(ExportNews::Packing { bytes });
    let first = match &delta {
        Some(delta) => (DELTA_NAME, delta.text()),
        None => (NAME, index.text()),
    };
    let size = pack(path, first, files, news).await.map_err(one)?;
    Ok(Exported { index, size, fetched: fetched.load(Ordering::Relaxed) })
}

async fn fetch_programs(
    store: &Store,
    programs: &[Artifact],
    news: &(dyn Fn(ExportNews) + Sync),
) -> Result<(), Error> {
    let (sender, mut receiver) = mpsc::unbounded_channel::<Progress>();
    let report = async {
        let mut done = BTreeMap::new();
        while let Some(Progress { component, version, arch, state }) = receiver.recv().await {
            match state {
                ProgressState::Started { done: before, .. } => {
                    let _ = done.insert((component, version, arch), before);
                }
                ProgressState::Advanced { done: now } => {
                    let before = done.insert((component, version, arch), now).unwrap_or(0);
                    news(ExportNews::Came { bytes: now.saturating_sub(before) });
                }
                ProgressState::Retrying { reason, wait } => {
                    let message = format!("{component} v{version}: {reason}; again in {} s", wait.as_secs());
                    news(ExportNews::Note { message });
                }
                ProgressState::Found | ProgressState::Finished => {}
            }
        }
    };
    let fetch = async {
        let never = CancellationToken::new();
        let mut all = futures::stream::iter(programs)
            .map(|artifact| store.fetch(artifact, &sender, &never))
            .buffer_unordered(PARALLEL_PROGRAMS);
        let mut first = Ok(());
        while let Some(fetched) = all.next().await {
            first = first.and(fetched.map(drop));
        }
        drop(all);
        drop(sender);
        first
    };
    tokio::join!(fetch, report).0
}

/// The index of the bundle, and the locations of its files.
fn describe(
    contents: &Contents,
    images: &[Image],
    (repositories, packed): (Vec<Repository>, Packed),
    store: &Store,
    blobs: &Blobs,
    path: &Path,
) -> Result<(BundleIndex, Vec<Source>), Error> {
    let mut files = Vec::new();
    let mut sources = Vec::new();
    let mut text = |name: &str, text: Vec<u8>| {
        let sha256 = kk_util::sha256(&text);
        files.push(FilePart { path: name.into(), size: text.len() as u64, sha256 });
        sources.push(Source::Text(text));
    };
    text("oci-layout", json!({"imageLayoutVersion": "1.0.0"}).to_string().into_bytes());
    text(LAYOUT_INDEX, image_index(images).into_bytes());
    let content: BTreeSet<_> = images.iter().flat_map(Image::blobs).collect();
    for blob in content {
        let sha256 = blob.sum.to_string();
        files.push(FilePart { path: format!("{BLOBS}{sha256}"), size: blob.size, sha256 });
        sources.push(Source::File(blobs.path(&blob.sum)));
    }
    let mut programs = Vec::new();
    for artifact in &contents.programs {
        let (file, sum, size) = store.published(artifact)?;
        let place = format!("programs/{}", artifact.place());
        programs.push(ProgramPart {
            name: artifact.component.name().to_owned(),
            version: artifact.version.to_string(),
            arch: artifact.arch.to_string(),
            path: place.clone(),
        });
        files.push(FilePart { path: place, size, sha256: sum.to_string() });
        sources.push(Source::File(file));
    }
    let mut packages = Vec::new();
    for repository in repositories {
        let (parts, of_it) = repository.parts();
        packages.extend(parts);
        let (of_index, places): (Vec<_>, Vec<_>) = of_it.into_iter().unzip();
        files.extend(of_index);
        sources.extend(places);
    }
    let Packed { charts, manifests, files: of_charts } = packed;
    let (of_index, places): (Vec<_>, Vec<_>) = of_charts.into_iter().unzip();
    files.extend(of_index);
    sources.extend(places);
    let images: Vec<ImagePart> = images.iter().map(image_part).collect();
    let name = contents.name.clone();
    let files = files.into();
    let mut index = BundleIndex { format: 0, name, programs, images, packages, charts, manifests, files };
    index.format = index.needed_format();
    let text = sbom::document(&index).into_bytes();
    index.files.push(FilePart {
        path: sbom::NAME.into(),
        size: text.len() as u64,
        sha256: kk_util::sha256(&text),
    });
    sources.push(Source::Text(text));
    // An index that could not be read again must not be written.
    let written = serde_json::to_vec(&index).expect("plain data");
    let index = BundleIndex::parse(&written).map_err(|reason| unusable(path, reason))?;
    Ok((index, sources))
}

fn image_part(image: &Image) -> ImagePart {
    let digest = |blob: &oci::Blob| format!("sha256:{}", blob.sum);
    let platform = |one: &oci::Platform| PlatformPart {
        arch: one.arch.to_string(),
        digest: digest(&one.manifest),
        media_type: one.media_type.clone(),
        blobs: one.blobs.iter().map(digest).collect(),
    };
    ImagePart {
        name: image.name.to_string(),
        digest: digest(&image.root),
        media_type: image.media_type.clone(),
        platforms: image.platforms.iter().map(platform).collect(),
    }
}

/// `index.json` of the layout. Both names are the full name, because containerd and skopeo look for that.
fn image_index(images: &[Image]) -> String {
    let entry = |image: &Image| {
        layout_entry(
            &image.name.to_string(),
            &image.media_type,
            &format!("sha256:{}", image.root.sum),
            image.root.size,
        )
    };
    layout_index(&images.iter().map(entry).collect::<Vec<_>>())
}

/// An entry of the index of an image layout.
fn layout_entry(name: &str, media_type: &str, digest: &str, size: u64) -> serde_json::Value {
    json!({
        "mediaType": media_type,
        "digest": digest,
        "size": size,
        "annotations": {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name},
    })
}

fn layout_index(manifests: &[serde_json::Value]) -> String {
    let media_type = "application/vnd.oci.image.index.v1+json";
    json!({"schemaVersion": 2, "mediaType": media_type, "manifests": manifests}).to_string()
}

impl BundleIndex {
    /// `index.json` of a layout with these images, each under the name by which a host knows it.
    pub(super) fn layout(&self, images: &[(&PlatformPart, &str)]) -> String {
        let entry = |(platform, name): &(&PlatformPart, &str)| {
            let size = self.file(&blob_path(&platform.digest)).map_or(0, |file| file.size);
            layout_entry(name, &platform.media_type, &platform.digest, size)
        };
        layout_index(&images.iter().map(entry).collect::<Vec<_>>())
    }
}

/// Packs on a separate thread, and reports progress meanwhile.
async fn pack(
    path: &Path,
    (name, text): (&'static str, Vec<u8>),
    files: Vec<(FilePart, Source)>,
    news: &(dyn Fn(ExportNews) + Sync),
) -> Result<u64, Error> {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let to = path.to_owned();
    let work = blocking(move || {
        // A receiver that is gone is no reason to stop.
        let wrote = |bytes| sender.send(bytes).unwrap_or_default();
        let files: Vec<_> = files.iter().map(|(file, source)| (file, source)).collect();
        write::write_after(&to, (name, &text), &files, &wrote)?;
        std::fs::metadata(&to).map(|data| data.len()).map_err(Error::file("look at", &to))
    });
    let report = async {
        while let Some(bytes) = receiver.recv().await {
            news(ExportNews::Packed { bytes });
        }
    };
    tokio::join!(work, report).0
}
