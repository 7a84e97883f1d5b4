//! Helm charts and Kubernetes manifests: located first, so that all errors are known at once, then fetched.
//!
//! All of them are stored by their SHA-256 next to the content of images ([`Blobs`](crate::oci::Blobs) owns the directory).

mod archive;
mod directory;
mod fetch;
mod find;
mod ignore;
mod local;
mod obtain;
mod repository;

pub(crate) use archive::{Identity, identity};
pub(crate) use fetch::{Chart, File};
pub use find::{CILIUM_REPOSITORY, newest_version};
pub(crate) use find::{Wanted, find};
pub use obtain::{Content, Obtained, is_local_chart, local_chart, local_manifest, obtain};

use crate::Error;

/// Largest chart or manifest that is read into memory. Helm unpacks no chart above 100 MiB (loader.MaxDecompressedChartSize).
const LARGEST: u64 = 64 << 20;

/// Stored content: its checksum, and its size in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) sum: crate::Sha256Sum,
    pub(crate) size: u64,
}

/// The error for a chart that is unavailable.
fn no_chart(chart: &kk_config::ChartSource, reason: impl Into<String>, hint: impl Into<String>) -> Error {
    Error::Source { part: format!("chart {chart}"), reason: reason.into(), hint: hint.into() }
}

/// The error for a manifest that is unavailable.
fn no_file(source: &kk_config::ManifestSource, reason: impl Into<String>, hint: impl Into<String>) -> Error {
    Error::Source { part: format!("manifest {source}"), reason: reason.into(), hint: hint.into() }
}

/// The hint for a server that does not serve the requested file.
const SERVER: &str =
    "check the address, the network and HTTPS_PROXY; downloaded data is kept for the next run";
