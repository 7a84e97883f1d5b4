//! [`Lock`]: permits only one process at a time to work on a file.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::Duration;

use crate::Error;

const POLL: Duration = Duration::from_millis(100);

/// Held until dropped, or until the process ends for any reason. Its file stays, because removing a lock file is a race.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits by polling, because a thread that waits in a system call could not be cancelled.
    pub(crate) async fn acquire(path: &Path) -> Result<Self, Error> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(Error::file("open", path))?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(POLL).await,
                Err(TryLockError::Error(source)) => return Err(Error::file("lock", path)(source)),
            }
        }
    }
}
