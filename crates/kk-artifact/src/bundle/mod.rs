//! Offline bundles: one file with the binaries, images, packages, charts and manifests of clusters.
//!
//! A bundle is a tar, packed by zstd or gzip, in this order:
//!
//! ```text
//! kk-bundle.json                                  the index: every part and every file, with size and SHA-256
//! oci-layout, index.json, blobs/sha256/<digits>   an OCI image layout (image-layout.md of image-spec) of all images
//! programs/<component>/v<version>/<arch>/<file>   programs as they are published, laid out as in a [`Store`]
//! packages/<system>/<version>/<arch>/<file>       packages of an operating system and their list: a repository
//! charts/<name>-<version>.tgz                     charts of helm, packed
//! manifests/<name>                                files with objects of Kubernetes
//! sbom.spdx.json                                  the same parts as an SPDX document
//! ```
//!
//! The index is the first file, so a bundle can be read as a stream: nothing is unpacked to inspect it, and a file that the index
//! does not name is refused. The same content always results in the same bytes.
//!
//! [`Store`]: crate::Store

mod charts;
mod compare;
mod contents;
mod delta;
mod diff;
mod export;
mod import;
mod index;
mod opened;
mod packages;
mod read;
mod sbom;
mod signature;
#[cfg(test)]
mod tests;
mod write;

pub use contents::Contents;
pub use delta::merge;
pub use diff::{Changed, Difference};
pub use export::{ExportNews, Exported, export};
pub use import::import;
pub use index::{
    BundleIndex, ChartPart, FilePart, FileParts, ImagePart, ManifestPart, PackagePart, PlatformPart,
    ProgramPart,
};
pub use opened::{Bundle, ContentFile};
pub use packages::HostPackages;
pub use read::{Verified, index, verify};
pub use signature::{Signed, VerifyingKey, signature_of};

use std::path::Path;

use crate::Error;

/// A bundle that cannot be used.
fn unusable(path: &Path, reason: impl Into<String>) -> Error {
    Error::Bundle { path: path.to_owned(), reason: reason.into() }
}
