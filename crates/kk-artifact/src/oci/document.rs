//! The documents of an image: index, manifest, configuration.

use kk_config::{Arch, ImageName};
use oci_spec::image::{Arch as OciArch, Descriptor, ImageConfiguration, ImageIndex, ImageManifest, Os};
use serde_json::Value;

use crate::{Error, Sha256Sum};

const INDEX: [&str; 2] =
    ["application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json"];
const MANIFEST: [&str; 2] =
    ["application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json"];
/// The accepted media types of a request.
pub(crate) const ACCEPTED: [&str; 4] = [INDEX[0], INDEX[1], MANIFEST[0], MANIFEST[1]];

/// Largest document of an image that is read into memory: registries accept no larger manifest (distribution-spec, "Pushing
/// Manifests").
pub(crate) const LARGEST: u64 = 4 << 20;

/// Largest content that a document may name: 1 TiB. Sums of sizes then fit their type, whatever sizes a registry makes up.
const LARGEST_CONTENT: u64 = 1 << 40;

/// A piece of content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Blob {
    pub(crate) sum: Sha256Sum,
    pub(crate) size: u64,
}

/// An image whose documents are in the store.
#[derive(Debug, Clone)]
pub(crate) struct Image {
    pub(crate) name: ImageName,
    pub(crate) media_type: String,
    /// Its index, or its manifest if it has no index.
    pub(crate) root: Blob,
    pub(crate) platforms: Vec<Platform>,
    /// Content that belongs to no platform. It is kept because the index contains it.
    pub(crate) more: Vec<Blob>,
}

/// An image for one architecture.
#[derive(Debug, Clone)]
pub(crate) struct Platform {
    pub(crate) arch: Arch,
    pub(crate) media_type: String,
    pub(crate) manifest: Blob,
    /// Configuration and layers.
    pub(crate) blobs: Vec<Blob>,
}

/// An index, or the manifest of a single platform.
pub(crate) enum Root {
    Index(Box<ImageIndex>),
    Manifest(Box<ImageManifest>),
}

/// Parses a registry's answer, or returns why it cannot be used.
pub(crate) fn root(bytes: &[u8]) -> Result<(Root, String), String> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let is_index = value["manifests"].is_array();
    // Readers do not agree on the meaning of such a document (distribution-spec, CVE-2021-41190), so kk could verify other content
    // than the hosts run.
    let is_manifest = ["config", "layers"].iter().any(|field| !value[field].is_null());
    if is_manifest && !value["manifests"].is_null() {
        return Err("it is both an index and a manifest".to_owned());
    }
    let media_type = match value["mediaType"].as_str() {
        Some(known) if ACCEPTED.contains(&known) && INDEX.contains(&known) == is_index => known.to_owned(),
        Some(other) => return Err(format!("`{other}` is not an image type")),
        None => (if is_index { INDEX[0] } else { MANIFEST[0] }).to_owned(),
    };
    let root = if is_index {
        Root::Index(Box::new(serde_json::from_slice(bytes).map_err(|error| error.to_string())?))
    } else {
        Root::Manifest(Box::new(serde_json::from_slice(bytes).map_err(|error| error.to_string())?))
    };
    Ok((root, media_type))
}

/// The manifest of a platform.
pub(crate) fn manifest(bytes: &[u8]) -> Result<ImageManifest, String> {
    match root(bytes)? {
        (Root::Manifest(manifest), _) => Ok(*manifest),
        (Root::Index(_), _) => Err("an index lies in its index".to_owned()),
    }
}

/// The content that a manifest names.
pub(crate) fn content(manifest: &ImageManifest) -> Result<Vec<Blob>, String> {
    std::iter::once(manifest.config()).chain(manifest.layers()).map(blob).collect()
}

/// A descriptor as content.
pub(crate) fn blob(descriptor: &Descriptor) -> Result<Blob, String> {
    let sum = descriptor.as_digest_sha256().and_then(|digits| digits.parse().ok());
    let sum = sum.ok_or_else(|| format!("{} is not a SHA-256", descriptor.digest()))?;
    if descriptor.size() > LARGEST_CONTENT {
        return Err(format!("{} is said to have {} bytes", descriptor.digest(), descriptor.size()));
    }
    Ok(Blob { sum, size: descriptor.size() })
}

/// The architecture of an entry of an index, if hosts can run it.
pub(crate) fn arch(entry: &Descriptor) -> Option<Arch> {
    let platform = entry.platform().as_ref()?;
    (*platform.os() == Os::Linux).then(|| known(platform.architecture()))?
}

/// The architecture that a configuration names.
pub(crate) fn arch_of_configuration(bytes: &[u8]) -> Result<Option<Arch>, String> {
    let configuration: ImageConfiguration =
        serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    Ok((*configuration.os() == Os::Linux).then(|| known(configuration.architecture())).flatten())
}

fn known(arch: &OciArch) -> Option<Arch> {
    match arch {
        OciArch::Amd64 => Some(Arch::Amd64),
        OciArch::ARM64 => Some(Arch::Arm64),
        _ => None,
    }
}

/// An index with only these entries. Everything else stays unchanged, so the same index always results in the same bytes.
pub(crate) fn reduced(bytes: &[u8], keep: &[&Descriptor]) -> Result<Vec<u8>, String> {
    let mut value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if let Some(entries) = value["manifests"].as_array_mut() {
        entries.retain(|entry| keep.iter().any(|kept| entry["digest"] == kept.digest().to_string().as_str()));
    }
    serde_json::to_vec(&value).map_err(|error| error.to_string())
}

impl Image {
    /// All of its content, the documents included.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = &Blob> {
        std::iter::once(&self.root)
            .chain(self.platforms.iter().flat_map(|one| std::iter::once(&one.manifest).chain(&one.blobs)))
            .chain(&self.more)
    }
}

/// An image that cannot be used.
pub(crate) fn unusable(image: &ImageName, reason: impl Into<String>) -> Error {
    Error::Image { image: image.to_string(), reason: reason.into() }
}
