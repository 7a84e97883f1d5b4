//! Compares a bundle's index with the documents of images, the lists of packages, and charts. Checksums prove only that the files
//! match the index, not that the index is right.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use oci_spec::image::{ANNOTATION_REF_NAME, Descriptor, ImageIndex, ImageManifest};

use super::index::{BundleIndex, LAYOUT_INDEX, blob_path};
use super::{FilePart, ImagePart, PlatformPart, charts, packages};
use crate::Sha256Sum;
use crate::charts::{Identity, identity};
use crate::oci::document::{self, Root};

/// Largest total size of all images' documents that are kept in memory; real documents are a few kilobytes each.
const LARGEST: usize = 64 << 20;

/// The documents of a bundle that is read as a stream, by their paths. Until all image indexes are read, it is
/// unknown which blobs are documents, so every file that begins like a document is kept.
#[derive(Default)]
pub(super) struct Documents {
    texts: BTreeMap<String, Vec<u8>>,
    bytes: usize,
    /// The identities in charts, by their paths.
    charts: BTreeMap<String, Result<Identity, String>>,
}

impl Documents {
    /// Reads a file that may be a document or contain one.
    pub(super) fn read(&mut self, file: &FilePart, content: &mut dyn Read) -> io::Result<()> {
        if charts::is_chart(&file.path) {
            self.charts.insert(file.path.clone(), identity(content));
        } else if file.size <= document::LARGEST {
            let mut text = Vec::new();
            content.read_to_end(&mut text)?;
            self.keep(&file.path, text);
        }
        Ok(())
    }

    /// Keeps a file that begins like a document, or that is a list of packages.
    fn keep(&mut self, path: &str, text: Vec<u8>) {
        if (text.starts_with(b"{") || packages::is_list(path)) && self.bytes + text.len() <= LARGEST {
            self.bytes += text.len();
            self.texts.insert(path.to_owned(), text);
        }
    }

    /// Compares all documents with the index.
    pub(super) fn compare(&self, index: &BundleIndex) -> Result<(), String> {
        layout(index, self.texts.get(LAYOUT_INDEX).map(Vec::as_slice))?;
        packages::compare(index, |file| self.texts.get(&file.path).cloned())?;
        charts::compare(index, |file| self.charts.get(&file.path).cloned())?;
        images(index, |digest| self.texts.get(&blob_path(digest)).cloned())
    }
}

/// Checks that `index.json` names the same images.
fn layout(index: &BundleIndex, text: Option<&[u8]>) -> Result<(), String> {
    let unreadable = |error: serde_json::Error| {
        format!("{LAYOUT_INDEX} cannot be read: {}", error.to_string().replace(char::is_control, "?"))
    };
    let parsed = text.map(serde_json::from_slice::<ImageIndex>).transpose().map_err(unreadable)?;
    let entry = |entry: &Descriptor| {
        let name = entry.annotations().as_ref()?.get(ANNOTATION_REF_NAME)?;
        Some((name.clone(), entry.digest().to_string()))
    };
    let entries = parsed.iter().flat_map(ImageIndex::manifests).map(entry);
    let there: Option<BTreeSet<_>> = entries.collect();
    let wanted = index.images.iter().map(|image| (image.name.clone(), image.digest.clone())).collect();
    if there == Some(wanted) { Ok(()) } else { Err(format!("{LAYOUT_INDEX} names other images")) }
}

/// Compares each image with its documents. `read` returns a document by its digest.
pub(super) fn images(index: &BundleIndex, read: impl Fn(&str) -> Option<Vec<u8>>) -> Result<(), String> {
    let compare = Compare { index, read };
    index.images.iter().try_for_each(|image| {
        let wrong = |reason: String| {
            // The reason may quote a document.
            let reason = reason.replace(char::is_control, "?");
            format!("what it says about {} is wrong: {reason}", image.name)
        };
        compare.image(image).map_err(wrong)
    })
}

struct Compare<'a, R> {
    index: &'a BundleIndex,
    read: R,
}

impl<R: Fn(&str) -> Option<Vec<u8>>> Compare<'_, R> {
    fn image(&self, image: &ImagePart) -> Result<(), String> {
        let (root, media_type) = document::root(&self.document(&image.digest)?)?;
        same(&image.media_type, &media_type, "its type")?;
        match root {
            Root::Index(entries) => self.entries(image, &entries),
            Root::Manifest(manifest) => self.single(image, &manifest),
        }
    }

    /// Checks that everything that an image index names is in the bundle; otherwise the image index could not be passed on.
    fn entries(&self, image: &ImagePart, entries: &ImageIndex) -> Result<(), String> {
        for entry in entries.manifests() {
            let digest = self.file_of(entry)?;
            let manifest = document::manifest(&self.document(&digest)?)?;
            match image.platforms.iter().find(|platform| platform.digest == digest) {
                Some(platform) => {
                    let arch = document::arch(entry).map_or("none", |arch| arch.as_str());
                    same(&platform.arch, arch, "an architecture")?;
                    same(&platform.media_type, entry.media_type().as_ref(), "the type of a manifest")?;
                    self.content(platform, &manifest)?;
                }
                None => self.files_of(&manifest).map(drop)?,
            }
        }
        let digests: BTreeSet<_> =
            entries.manifests().iter().map(|entry| entry.digest().to_string()).collect();
        match image.platforms.iter().find(|platform| !digests.contains(&platform.digest)) {
            Some(platform) => Err(format!("its index does not name {}", platform.digest)),
            None => Ok(()),
        }
    }

    /// An image without an index is for the platform of its configuration.
    fn single(&self, image: &ImagePart, manifest: &ImageManifest) -> Result<(), String> {
        let config = self.document(&self.file_of(manifest.config())?)?;
        let arch = document::arch_of_configuration(&config)?;
        let [platform] = &image.platforms[..] else {
            return Err(format!("it has one platform, not {}", image.platforms.len()));
        };
        same(&platform.digest, &image.digest, "its manifest")?;
        same(&platform.media_type, &image.media_type, "the type of its manifest")?;
        same(&platform.arch, arch.map_or("none", |arch| arch.as_str()), "its architecture")?;
        self.content(platform, manifest)
    }

    /// Checks configuration and layers, in their order.
    fn content(&self, platform: &PlatformPart, manifest: &ImageManifest) -> Result<(), String> {
        let there = self.files_of(manifest)?;
        if there == platform.blobs { Ok(()) } else { Err("its manifest names other content".to_owned()) }
    }

    fn files_of(&self, manifest: &ImageManifest) -> Result<Vec<String>, String> {
        std::iter::once(manifest.config()).chain(manifest.layers()).map(|one| self.file_of(one)).collect()
    }

    /// The digest in a descriptor, if the bundle contains that file with the descriptor's size.
    fn file_of(&self, descriptor: &Descriptor) -> Result<String, String> {
        let blob = document::blob(descriptor)?;
        let digest = format!("sha256:{}", blob.sum);
        match self.index.file(&blob_path(&digest)) {
            Some(file) if file.size == blob.size => Ok(digest),
            Some(file) => Err(format!("{digest} has {} bytes, not {}", file.size, blob.size)),
            None => Err(format!("{digest} is missing")),
        }
    }

    fn document(&self, digest: &str) -> Result<Vec<u8>, String> {
        (self.read)(digest).ok_or_else(|| format!("{digest} is no document"))
    }
}

fn same(said: &str, is: &str, what: &str) -> Result<(), String> {
    if said == is { Ok(()) } else { Err(format!("{what} is {is}, not {said}")) }
}

/// The checksum in a digest.
pub(super) fn sum(digest: &str) -> Option<Sha256Sum> {
    digest.strip_prefix("sha256:")?.parse().ok()
}
