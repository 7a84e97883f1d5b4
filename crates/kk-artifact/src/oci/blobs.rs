//! [`Blobs`]: the content of images on the control machine, by digest.
//!
//! ```text
//! <dir>/oci/blobs/sha256/<digits>          whole and verified
//!                        .<digits>.part    on its way from a registry
//!                        .<digits>.import  on its way out of a bundle
//!                        .<digits>.stamp   when it last changed before it was verified
//!                        .lock             held by the process that writes
//! ```

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::document;
use crate::hashing::Hashing;
use crate::{Error, Sha256Sum};
use crate::{lock::Lock, stamp::Stamp};

/// The directory of the content of images.
#[derive(Debug, Clone)]
pub(crate) struct Blobs {
    dir: PathBuf,
    /// Held by who writes a document: several images may have the same one.
    writing: Arc<Mutex<()>>,
}

impl Blobs {
    /// Below the directory of a store.
    pub(crate) fn new(store: &Path) -> Self {
        Self { dir: store.join("oci/blobs/sha256"), writing: Arc::default() }
    }

    /// In a directory with an OCI image layout.
    pub(super) fn of_layout(dir: &Path) -> Self {
        Self { dir: dir.join("blobs/sha256"), writing: Arc::default() }
    }

    /// Waits until no other process writes.
    pub(crate) async fn lock(&self) -> Result<Lock, Error> {
        fs::create_dir_all(&self.dir).map_err(Error::file("make", &self.dir))?;
        Lock::acquire(&self.dir.join(".lock")).await
    }

    /// Where a blob is, or will be when it is whole.
    pub(crate) fn path(&self, sum: &Sha256Sum) -> PathBuf {
        self.dir.join(sum.as_str())
    }

    /// Where a blob grows.
    pub(crate) fn part(&self, sum: &Sha256Sum) -> PathBuf {
        self.dir.join(format!(".{sum}.part"))
    }

    /// Whether a blob is here. What has its name was verified when it got it; who packs it verifies it again.
    pub(crate) fn has(&self, sum: &Sha256Sum, size: u64) -> bool {
        fs::metadata(self.path(sum)).is_ok_and(|data| data.is_file() && data.len() == size)
    }

    /// Bytes of a blob, if it is here.
    pub(crate) fn size(&self, sum: &Sha256Sum) -> Option<u64> {
        fs::metadata(self.path(sum)).ok().filter(fs::Metadata::is_file).map(|data| data.len())
    }

    /// Whether a blob is here and not damaged. It is read if it has changed since it was verified here.
    pub(crate) fn is_whole(&self, sum: &Sha256Sum, size: u64) -> Result<bool, Error> {
        if !self.has(sum, size) {
            return Ok(false);
        }
        let path = self.path(sum);
        let known =
            fs::read(self.stamp(sum)).ok().and_then(|text| serde_json::from_slice::<Stamp>(&text).ok());
        if known.is_some_and(|stamp| stamp.is_still_that_of(&path)) {
            return Ok(true);
        }
        // Before it is read: what changes while it is read is found next time.
        let now = Stamp::of(&path).map_err(Error::file("look at", &path))?;
        let mut seen = Hashing::new(io::sink());
        fs::File::open(&path).and_then(|file| seen.copy_from(file)).map_err(Error::file("read", &path))?;
        if seen.finish().0 != *sum {
            return Ok(false);
        }
        let text = serde_json::to_vec(&now).expect("numbers only");
        // Where it cannot be written (a disk that is full) the blob is read next time, too; one that is cut short is none.
        let _ = fs::write(self.stamp(sum), text);
        Ok(true)
    }

    fn stamp(&self, sum: &Sha256Sum) -> PathBuf {
        self.dir.join(format!(".{sum}.stamp"))
    }

    /// A document of an image, if it is here and not damaged.
    pub(crate) fn document(&self, sum: &Sha256Sum) -> Option<Vec<u8>> {
        let path = self.path(sum);
        let size = fs::metadata(&path).ok()?.len();
        let bytes = (size <= document::LARGEST).then(|| fs::read(&path).ok())??;
        (Sha256Sum::of_bytes(&bytes) == *sum).then_some(bytes)
    }

    /// Keeps a document.
    pub(crate) fn put(&self, bytes: &[u8]) -> Result<Sha256Sum, Error> {
        let sum = Sha256Sum::of_bytes(bytes);
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.document(&sum).is_none() {
            let part = self.part(&sum);
            write_synced(&part, bytes).map_err(Error::file("write", &part))?;
            self.keep(&part, &sum)?;
        }
        Ok(sum)
    }

    /// Gives a verified part its name.
    pub(crate) fn keep(&self, part: &Path, sum: &Sha256Sum) -> Result<(), Error> {
        let path = self.path(sum);
        fs::rename(part, &path).map_err(Error::file("write", &path))
    }
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
