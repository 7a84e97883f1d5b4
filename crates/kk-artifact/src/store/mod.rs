//! [`Store`]: the directory of verified downloads on the control machine.
//!
//! ```text
//! <dir>/<component>/v<version>/<arch>/<file as published>
//!                                     bin/<program>        taken out of an archive
//!                                     .<file>.json         what was verified, and when it last changed
//!                                     .<file>.part         a download on its way (.part.tag: which version of it)
//!                                     .<file>.lock         held by the process that works on it
//! ```
//!
//! A file that was copied there by hand is used if its checksum is right. Files appear under their names only when they are
//! complete and verified.

mod download;
mod entry;
mod published;
mod reach;
mod record;
mod unpack;
mod web;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kk_config::Arch;
use reqwest::Client;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use crate::{Artifact, Component, Error, Layout, Sha256Sum, client};

use entry::Entry;

pub(crate) use entry::blocking;

/// The settings of a store and its downloads.
#[derive(Debug, Clone)]
pub struct StoreSettings {
    /// The directory; created when the first file is stored.
    pub dir: PathBuf,
    /// PEM file with certificates that are trusted in addition to the machine's.
    pub ca_file: Option<PathBuf>,
    /// Nothing is downloaded: a missing file is an error.
    pub offline: bool,
    /// Maximum number of concurrent downloads.
    pub parallel: NonZeroUsize,
    /// The retries after transient errors.
    pub retry: Retry,
}

impl StoreSettings {
    /// Four concurrent downloads, the machine's certificates, the default [`Retry`].
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        let parallel = NonZeroUsize::new(4).expect("4 is not 0");
        Self { dir: dir.into(), ca_file: None, offline: false, parallel, retry: Retry::default() }
    }
}

/// Exponential back-off with jitter for transient errors.
#[derive(Debug, Clone, Copy)]
pub struct Retry {
    /// Consecutive attempts without progress, including the first.
    pub tries: u32,
    /// Wait after the first attempt; doubled each time, and each wait is shortened by up to a half at random.
    pub wait: Duration,
}

impl Default for Retry {
    /// 5 attempts, 1 s (so up to 15 s in total).
    fn default() -> Self {
        Self { tries: 5, wait: Duration::from_secs(1) }
    }
}

/// A verified binary on the control machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalFile {
    /// Name of the binary, such as `containerd-shim-runc-v2`.
    pub name: String,
    /// Its path.
    pub path: PathBuf,
    /// 64 lower-case hexadecimal digits.
    pub sha256: String,
    /// Bytes.
    pub size: u64,
    /// Permission bits, also for the installed binary.
    pub mode: u32,
}

/// A progress report of one download.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the first three are those of the artifact")]
pub struct Progress {
    pub component: Component,
    pub version: String,
    pub arch: Arch,
    /// The state of the download.
    pub state: ProgressState,
}

/// The state of a download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgressState {
    /// The file was present; nothing was downloaded.
    Found,
    /// The transfer begins.
    Started {
        /// Bytes that were present from an earlier attempt.
        done: u64,
        /// Size of the file, if the server reports it.
        total: Option<u64>,
    },
    /// More bytes were received.
    Advanced {
        /// Total bytes.
        done: u64,
    },
    /// It failed with a transient error and is retried.
    Retrying {
        /// Why.
        reason: String,
        /// When.
        wait: Duration,
    },
    /// It is verified, unpacked and stored.
    Finished,
}

/// A directory of verified downloads. Several tasks and several processes may use one at once.
#[derive(Debug)]
pub struct Store {
    settings: StoreSettings,
    client: Client,
    slots: Semaphore,
}

impl Store {
    /// Fails if the CA file cannot be used; the directory is not accessed.
    pub fn new(settings: StoreSettings) -> Result<Self, Error> {
        let client = client::build(settings.ca_file.as_deref())?;
        let slots = Semaphore::new(settings.parallel.get());
        Ok(Self { settings, client, slots })
    }

    /// The binaries of an artifact, if they are available without network: verified by an earlier fetch and unchanged since, or
    /// extracted again from an archive whose checksum is right.
    pub async fn cached(&self, artifact: &Artifact) -> Option<Vec<LocalFile>> {
        self.entry(artifact).cached().await.ok().flatten()
    }

    /// The binaries of an artifact; downloads missing files.
    ///
    /// If `cancel` fires, or if the future is dropped, the partial download is kept for the next time.
    pub async fn fetch(
        &self,
        artifact: &Artifact,
        progress: &UnboundedSender<Progress>,
        cancel: &CancellationToken,
    ) -> Result<Vec<LocalFile>, Error> {
        let report = |state| {
            let Artifact { component, version, arch, .. } = artifact;
            // A receiver that is gone is no reason to stop.
            let _ = progress.send(Progress {
                component: *component,
                version: version.to_string(),
                arch: *arch,
                state,
            });
        };
        if self.settings.offline {
            return self.cached(artifact).await.ok_or_else(|| self::offline(artifact));
        }
        let work = async {
            let _slot = self.slots.acquire().await.expect("the semaphore is never closed");
            self.entry(artifact).fetch(&self.client, self.settings.retry, &report).await
        };
        cancel.run_until_cancelled(work).await.unwrap_or(Err(Error::Cancelled))
    }

    /// Asks the servers for every missing file, so that all missing files are known before the first change on a host. Returns
    /// the bytes to download (as far as the servers report them), or all errors.
    pub async fn check_reachable(&self, artifacts: &[Artifact]) -> Result<u64, Vec<Error>> {
        if !self.settings.offline {
            return reach::check(self, artifacts).await;
        }
        let mut errors = Vec::new();
        for artifact in artifacts {
            if self.cached(artifact).await.is_none() {
                errors.push(offline(artifact));
            }
        }
        if errors.is_empty() { Ok(0) } else { Err(errors) }
    }

    /// The path of the image content with this digest (`sha256:…`), if it is in the store.
    pub fn blob(&self, digest: &str) -> PathBuf {
        self.settings.dir.join("oci/blobs/sha256").join(digest.strip_prefix("sha256:").unwrap_or(digest))
    }

    /// The content of images, as a layout to push from.
    pub fn images(&self) -> Layout {
        Layout::open(&self.settings.dir.join("oci"))
    }

    /// The directory.
    pub(crate) fn dir(&self) -> &Path {
        &self.settings.dir
    }

    /// The published file of a fetched artifact, with its checksum and size.
    pub(crate) fn published(&self, artifact: &Artifact) -> Result<(PathBuf, Sha256Sum, u64), Error> {
        self.entry(artifact).described()
    }

    fn entry(&self, artifact: &Artifact) -> Entry {
        Entry::new(&self.settings.dir, artifact)
    }
}

fn offline(artifact: &Artifact) -> Error {
    Error::Offline { part: artifact.to_string() }
}

#[cfg(test)]
pub(crate) mod tests;
