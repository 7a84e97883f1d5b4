//! [`Stamp`]: detects without reading a file whether it has changed since it was verified.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Changes whenever the content does: unlike the modification time, the change time cannot be set by users.
#[derive(Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(super) size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let metadata: Metadata = fs::metadata(path)?;
        Ok(Self {
            size: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    pub(crate) fn is_still_that_of(&self, path: &Path) -> bool {
        Self::of(path).is_ok_and(|now| now == *self)
    }
}
