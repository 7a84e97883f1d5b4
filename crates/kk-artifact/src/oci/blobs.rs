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
    /// Held while a document is written: several images may have the same document.
    writing: Arc<Mutex<()>>,
}

impl Blobs {
    /// The content below the directory of a store.
    pub(crate) fn new(store: &Path) -> Self {
        Self { dir: store.join("oci/blobs/sha256"), writing: Arc::default() }
    }

    /// The content in a directory with an OCI image layout.
    pub(super) fn of_layout(dir: &Path) -> Self {
        Self { dir: dir.join("blobs/sha256"), writing: Arc::default() }
    }

    /// Waits until no other process writes.
    pub(crate) async fn lock(&self) -> Result<Lock, Error> {
        fs::create_dir_all(&self.dir).map_err(Error::file("make", &self.dir))?;
        Lock::acquire(&self.dir.join(".lock")).await
    }

    /// The path of a complete blob.
    pub(crate) fn path(&self, sum: &Sha256Sum) -> PathBuf {
        self.dir.join(sum.as_str())
    }

    /// The path of a partial blob.
    pub(crate) fn part(&self, sum: &Sha256Sum) -> PathBuf {
        self.dir.join(format!(".{sum}.part"))
    }

    /// Whether the store has a blob. It was verified when it got its name; an export verifies it again.
    pub(crate) fn has(&self, sum: &Sha256Sum, size: u64) -> bool {
        fs::metadata(self.path(sum)).is_ok_and(|data| data.is_file() && data.len() == size)
    }

    /// Size of a blob, if the store has it.
    pub(crate) fn size(&self, sum: &Sha256Sum) -> Option<u64> {
        fs::metadata(self.path(sum)).ok().filter(fs::Metadata::is_file).map(|data| data.len())
    }

    /// Whether the store has an undamaged blob. The blob is read if it has changed since it was last verified.
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
        // Taken before the blob is read: a change during the read is then found next time.
        let now = Stamp::of(&path).map_err(Error::file("look at", &path))?;
        let mut seen = Hashing::new(io::sink());
        fs::File::open(&path).and_then(|file| seen.copy_from(file)).map_err(Error::file("read", &path))?;
        if seen.finish().0 != *sum {
            return Ok(false);
        }
        let text = serde_json::to_vec(&now).expect("numbers only");
        // If the stamp cannot be written (a full disk), the blob is read again next time; a truncated stamp is ignored.
        let _ = fs::write(self.stamp(sum), text);
        Ok(true)
    }

    fn stamp(&self, sum: &Sha256Sum) -> PathBuf {
        self.dir.join(format!(".{sum}.stamp"))
    }

    /// A document of an image, if the store has it undamaged.
    pub(crate) fn document(&self, sum: &Sha256Sum) -> Option<Vec<u8>> {
        let path = self.path(sum);
        let size = fs::metadata(&path).ok()?.len();
        let bytes = (size <= document::LARGEST).then(|| fs::read(&path).ok())??;
        (Sha256Sum::of_bytes(&bytes) == *sum).then_some(bytes)
    }

    /// Stores a document.
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

    /// Renames a verified partial blob to its final name.
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
