//! [`Entry`]: the directory of one artifact in the store.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use reqwest::Client;

use super::download::Download;
use super::published;
use super::record::Record;
use super::unpack::{self, PROGRAM_MODE};
use super::{LocalFile, ProgressState, Retry};
use crate::artifact::Content;
use crate::hashing::Hashing;
use crate::lock::Lock;
use crate::{Artifact, Checksum, Error, Sha256Sum};

#[derive(Debug, Clone)]
pub(super) struct Entry {
    artifact: Artifact,
    /// `<store>/<component>/v<version>/<arch>`
    dir: PathBuf,
}

impl Entry {
    pub(super) fn new(store: &Path, artifact: &Artifact) -> Self {
        let file = store.join(artifact.place());
        let dir = file.parent().unwrap_or(store).to_owned();
        Self { artifact: artifact.clone(), dir }
    }

    /// The file as published.
    fn published(&self) -> PathBuf {
        self.dir.join(self.artifact.address.file_name())
    }

    fn hidden(&self, suffix: &str) -> PathBuf {
        self.dir.join(format!(".{}{suffix}", self.artifact.address.file_name()))
    }

    /// The binaries that are available without network; see [`Store::cached`](super::Store::cached).
    pub(super) async fn cached(&self) -> Result<Option<Vec<LocalFile>>, Error> {
        let entry = self.clone();
        if let Some(programs) = blocking(move || entry.recorded()).await {
            return Ok(Some(programs));
        }
        // The checksum of a version that no catalogue knows was recorded when it was fetched.
        let sum = match &self.artifact.checksum {
            Checksum::Known(sum) => Some(sum.clone()),
            Checksum::Published(_) => Record::read(&self.hidden(".json")).and_then(|record| record.sum()),
        };
        match sum {
            Some(sum) if self.published().exists() => {
                let lock = Arc::new(Lock::acquire(&self.hidden(".lock")).await?);
                self.settle(&lock, &sum).await
            }
            _ => Ok(None),
        }
    }

    /// The published file, its checksum at verification, and its size.
    pub(super) fn described(&self) -> Result<(PathBuf, Sha256Sum, u64), Error> {
        let path = self.published();
        let size = fs::metadata(&path).map_err(Error::file("look at", &path))?.len();
        let sum = Record::read(&self.hidden(".json")).and_then(|record| record.sum());
        let sum = sum.ok_or_else(|| Error::Offline { part: self.artifact.to_string() })?;
        Ok((path, sum, size))
    }

    /// See [`Store::fetch`](super::Store::fetch).
    pub(super) async fn fetch(
        &self,
        client: &Client,
        retry: Retry,
        report: &(impl Fn(ProgressState) + Sync),
    ) -> Result<Vec<LocalFile>, Error> {
        if let Some(programs) = self.cached().await? {
            report(ProgressState::Found);
            return Ok(programs);
        }
        fs::create_dir_all(&self.dir).map_err(Error::file("make", &self.dir))?;
        let lock = Arc::new(Lock::acquire(&self.hidden(".lock")).await?);
        let sum = match &self.artifact.checksum {
            Checksum::Known(sum) => sum.clone(),
            Checksum::Published(address) => {
                published::sum(client, address, self.artifact.address.file_name(), retry, report).await?
            }
        };
        // Another process may have been faster, or a file that was copied there by hand may match a checksum that is known only
        // now.
        if let Some(programs) = self.settle(&lock, &sum).await? {
            report(ProgressState::Found);
            return Ok(programs);
        }
        let part = self.hidden(".part");
        let download = Download {
            client,
            address: &self.artifact.address,
            part: &part,
            tag: &self.hidden(".part.tag"),
            sum: &sum,
            retry,
            report,
        };
        download.run().await?;
        let programs = self.install(&lock, sum, Some(part)).await?;
        report(ProgressState::Finished);
        Ok(programs)
    }

    /// The binaries, if nothing changed since they were verified. Needs no lock, because files are only ever replaced as a whole.
    fn recorded(&self) -> Option<Vec<LocalFile>> {
        let record = Record::read(&self.hidden(".json"))?;
        if let Checksum::Known(sum) = &self.artifact.checksum
            && record.sum().as_ref() != Some(sum)
        {
            return None;
        }
        record.programs(&self.dir, &self.published(), &self.artifact.content)
    }

    /// The binaries, if the published file is present and right, even if the binaries are missing or damaged.
    async fn settle(&self, lock: &Arc<Lock>, sum: &Sha256Sum) -> Result<Option<Vec<LocalFile>>, Error> {
        let published = self.published();
        let actual = blocking(move || hash(&published)).await?;
        if actual.as_ref() != Some(sum) {
            return Ok(None);
        }
        self.install(lock, sum.clone(), None).await.map(Some)
    }

    /// Moves a verified download to its path, extracts the binaries and records them. The lock is passed along, because the work
    /// continues if the caller is cancelled.
    async fn install(
        &self,
        lock: &Arc<Lock>,
        sum: Sha256Sum,
        part: Option<PathBuf>,
    ) -> Result<Vec<LocalFile>, Error> {
        let (entry, lock) = (self.clone(), Arc::clone(lock));
        blocking(move || {
            let published = entry.published();
            if let Some(part) = part {
                fs::rename(&part, &published).map_err(Error::file("write", &published))?;
            }
            let programs = entry.take_programs(&published, &sum)?;
            Record::new(&entry.dir, &published, &sum, &programs)?.write(&entry.hidden(".json"))?;
            drop(lock);
            Ok(programs)
        })
        .await
    }

    fn take_programs(&self, published: &Path, sum: &Sha256Sum) -> Result<Vec<LocalFile>, Error> {
        let Content::Program(name) = &self.artifact.content else {
            return unpack::unpack(published, &self.artifact.content, &self.dir.join("bin"));
        };
        let permissions = Permissions::from_mode(PROGRAM_MODE);
        fs::set_permissions(published, permissions).map_err(Error::file("make executable", published))?;
        let size = fs::metadata(published).map_err(Error::file("look at", published))?.len();
        Ok(vec![LocalFile {
            name: name.clone(),
            path: published.to_owned(),
            sha256: sum.to_string(),
            size,
            mode: PROGRAM_MODE,
        }])
    }
}

/// `None` if there is no such file.
fn hash(path: &Path) -> Result<Option<Sha256Sum>, Error> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::file("open", path)(error)),
    };
    let mut hashing = Hashing::new(io::sink());
    hashing.copy_from(file).map_err(Error::file("read", path))?;
    Ok(Some(hashing.finish().0))
}

/// Runs work that waits for the disk or needs much processor time outside of the async threads.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
