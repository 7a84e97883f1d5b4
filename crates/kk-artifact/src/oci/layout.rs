//! A local OCI image layout: the images that it names, and all documents of each image.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kk_config::ImageName;
use oci_spec::image::{ANNOTATION_REF_NAME, Descriptor, ImageIndex};

use super::blobs::Blobs;
use super::document::{self, Blob, Root};
use crate::Error;

/// containerd and similar tools store the full name of an image under this key.
const FULL_NAME: &str = "io.containerd.image.name";

/// An image of a layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutImage {
    /// Its full name.
    pub name: ImageName,
    /// `sha256:…` of its index, or of its manifest if it has no index.
    pub digest: String,
}

/// A directory with `index.json` and `blobs/sha256/`, or the part of a store that has this layout.
#[derive(Debug, Clone)]
pub struct Layout {
    dir: PathBuf,
    blobs: Blobs,
}

/// A document to push: its bytes, and so its digest, stay unchanged.
pub(super) struct Document {
    pub(super) digest: String,
    pub(super) media_type: String,
    pub(super) bytes: Vec<u8>,
}

/// All documents and blobs of an image.
pub(super) struct Tree {
    /// Manifests that its index names.
    pub(super) children: Vec<Document>,
    pub(super) root: Document,
    /// Configurations and layers, each once.
    pub(super) blobs: BTreeSet<Blob>,
}

impl Layout {
    /// The layout in a directory.
    pub fn open(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), blobs: Blobs::of_layout(dir) }
    }

    /// The images that `index.json` names, by their full names.
    pub fn images(&self) -> Result<Vec<LayoutImage>, Error> {
        let path = self.dir.join("index.json");
        let unusable = |reason: String| Error::Layout { path: self.dir.clone(), reason };
        let text = std::fs::read(&path).map_err(Error::file("read", &path))?;
        let index: ImageIndex = serde_json::from_slice(&text)
            .map_err(|error| unusable(format!("index.json cannot be read: {}", shown(&error.to_string()))))?;
        let images: Result<Vec<_>, String> = index.manifests().iter().map(image).collect();
        let images = images.map_err(unusable)?;
        if images.is_empty() { Err(unusable("index.json names no image".to_owned())) } else { Ok(images) }
    }

    /// Reads all documents of an image, and checks that its content is present.
    pub(super) fn tree(&self, image: &LayoutImage) -> Result<Tree, Error> {
        let wrong = |reason: String| Error::Layout {
            path: self.dir.clone(),
            reason: format!("{}: {}", image.name, shown(&reason)),
        };
        self.read(&image.digest).map_err(wrong)
    }

    fn read(&self, digest: &str) -> Result<Tree, String> {
        let bytes = self.document(digest)?;
        let (root, media_type) = document::root(&bytes)?;
        let (mut children, mut blobs) = (Vec::new(), BTreeSet::new());
        match root {
            Root::Manifest(manifest) => blobs.extend(document::content(&manifest)?),
            Root::Index(index) => {
                for entry in index.manifests() {
                    let digest = format!("sha256:{}", document::blob(entry)?.sum);
                    let bytes = self.document(&digest)?;
                    blobs.extend(document::content(&document::manifest(&bytes)?)?);
                    children.push(Document { digest, media_type: entry.media_type().to_string(), bytes });
                }
            }
        }
        match blobs.iter().find(|blob| !self.blobs.has(&blob.sum, blob.size)) {
            Some(blob) => Err(format!("sha256:{} is missing, or not whole", blob.sum)),
            None => {
                Ok(Tree { children, root: Document { digest: digest.to_owned(), media_type, bytes }, blobs })
            }
        }
    }

    fn document(&self, digest: &str) -> Result<Vec<u8>, String> {
        let sum = digest.strip_prefix("sha256:").and_then(|digits| digits.parse().ok());
        let bytes = sum.and_then(|sum| self.blobs.document(&sum));
        bytes.ok_or_else(|| format!("{digest} is missing or damaged"))
    }

    /// The path of a blob.
    pub(super) fn path(&self, blob: &Blob) -> PathBuf {
        self.blobs.path(&blob.sum)
    }
}

fn image(entry: &Descriptor) -> Result<LayoutImage, String> {
    let annotations = entry.annotations().iter().flatten();
    let named = |key: &str| annotations.clone().find(|(name, _)| *name == key).map(|(_, value)| value);
    let text = named(FULL_NAME).or_else(|| named(ANNOTATION_REF_NAME));
    let name = text.and_then(|text| text.parse().ok()).ok_or_else(|| {
        let text = shown(text.map_or("", String::as_str));
        format!("index.json gives an image the name `{text}`, and a full one is needed, such as docker.io/library/nginx:1.27")
    })?;
    Ok(LayoutImage { name, digest: entry.digest().to_string() })
}

/// Makes text from other machines safe for a terminal.
fn shown(text: &str) -> String {
    text.replace(char::is_control, "?")
}
