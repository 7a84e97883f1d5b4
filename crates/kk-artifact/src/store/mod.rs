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
//! A file that somebody put there by hand is taken when its sum is right. Files appear under their names only when
//! they are whole and verified.

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

/// Where a store is and how it downloads.
#[derive(Debug, Clone)]
pub struct StoreSettings {
    /// The directory; made when the first file comes.
    pub dir: PathBuf,
    /// PEM file with certificates that are trusted besides those of the machine.
    pub ca_file: Option<PathBuf>,
    /// Nothing is downloaded: what is not here is an error.
    pub offline: bool,
    /// Downloads at once.
    pub parallel: NonZeroUsize,
    /// What is done about errors that may pass.
    pub retry: Retry,
}

impl StoreSettings {
    /// Four downloads at once, the machine's certificates, the default [`Retry`].
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        let parallel = NonZeroUsize::new(4).expect("4 is not 0");
        Self { dir: dir.into(), ca_file: None, offline: false, parallel, retry: Retry::default() }
    }
}

/// Exponential back-off with jitter for errors that may pass.
#[derive(Debug, Clone, Copy)]
pub struct Retry {
    /// Tries in a row that bring nothing new, the first included.
    pub tries: u32,
    /// Wait after the first; doubled each time, and each wait is shortened by up to a half at random.
    pub wait: Duration,
}

impl Default for Retry {
    /// 5 tries, 1 s (so up to 15 s in all).
    fn default() -> Self {
        Self { tries: 5, wait: Duration::from_secs(1) }
    }
}

/// A verified program on the control machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalFile {
    /// Name of the program, such as `containerd-shim-runc-v2`.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// 64 lower-case hexadecimal digits.
    pub sha256: String,
    /// Bytes.
    pub size: u64,
    /// Permission bits; the same for what is installed from it.
    pub mode: u32,
}

/// News of one download.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the first three are those of the artifact")]
pub struct Progress {
    pub component: Component,
    pub version: String,
    pub arch: Arch,
    /// What happened.
    pub state: ProgressState,
}

/// What happened to a download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgressState {
    /// It was there; nothing was downloaded.
    Found,
    /// Bytes begin to come.
    Started {
        /// Bytes that were already there from an earlier try.
        done: u64,
        /// Size of the file, if the server says it.
        total: Option<u64>,
    },
    /// More bytes came.
    Advanced {
        /// Bytes in all.
        done: u64,
    },
    /// It failed in a way that may pass and is tried again.
    Retrying {
        /// Why.
        reason: String,
        /// When.
        wait: Duration,
    },
    /// It is verified, unpacked and in its place.
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
    /// Fails when the CA file cannot be used; the directory is not looked at.
    pub fn new(settings: StoreSettings) -> Result<Self, Error> {
        let client = client::build(settings.ca_file.as_deref())?;
        let slots = Semaphore::new(settings.parallel.get());
        Ok(Self { settings, client, slots })
    }

    /// The programs of an artifact, if they can be had without network: verified by an earlier fetch and unchanged
    /// since, or made again from an archive whose sum is right.
    pub async fn cached(&self, artifact: &Artifact) -> Option<Vec<LocalFile>> {
        self.entry(artifact).cached().await.ok().flatten()
    }

    /// The programs of an artifact; downloads what is missing.
    ///
    /// When `cancel` fires, or when the future is dropped, what has come so far stays for the next time.
    pub async fn fetch(
        &self,
        artifact: &Artifact,
        progress: &UnboundedSender<Progress>,
        cancel: &CancellationToken,
    ) -> Result<Vec<LocalFile>, Error> {
        let report = |state| {
            let Artifact { component, version, arch, .. } = artifact;
            // Nobody listens any more: no reason to stop.
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

    /// Asks the servers for everything that is not here, so that whatever is missing is known before the first
    /// change on a host. Gives the bytes that will be downloaded (as far as the servers say), or all that is wrong.
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

    /// Where the content of images with this digest (`sha256:…`) is, when it is here.
    pub fn blob(&self, digest: &str) -> PathBuf {
        self.settings.dir.join("oci/blobs/sha256").join(digest.strip_prefix("sha256:").unwrap_or(digest))
    }

    /// The content of images, from which they can be pushed.
    pub fn images(&self) -> Layout {
        Layout::open(&self.settings.dir.join("oci"))
    }

    /// The directory.
    pub(crate) fn dir(&self) -> &Path {
        &self.settings.dir
    }

    /// The published file of an artifact that was fetched, with its sum and size.
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
