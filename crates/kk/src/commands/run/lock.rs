//! Permits only one run at a time in the directory of a cluster: two runs would undo each other's work on the hosts.
//!
//! The kernel owns the lock, so it is released when its process ends for any reason. The file names the process.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use kk_util::create_private_directory;

use crate::error::Error;

/// Held as long as this lives.
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of `kubekey/<cluster>`; the directory is created if it is missing.
    pub(super) fn take(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(".lock");
        let failed = |error| Error::workdir(&path, error);
        create_private_directory(directory).map_err(failed)?;
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => name_holder(&mut file).map_err(failed)?,
            Err(TryLockError::WouldBlock) => return Err(taken(directory, &mut file)),
            // Some file systems have no locks, and this is no reason to refuse them.
            Err(TryLockError::Error(_)) => {}
        }
        Ok(Self { _file: file })
    }
}

fn name_holder(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())
}

fn taken(directory: &Path, file: &mut File) -> Error {
    let mut process = String::new();
    // Without the process id the message still states the essential part.
    let _ = file.read_to_string(&mut process);
    Error::Other {
        doing: format!("begin in {}", directory.display()),
        cause: format!("another kk works there (process {})", process.trim()),
        hint: Some("wait until it ends, or stop it with Ctrl-C".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_refused_until_the_first_has_ended() {
        let directory = tempfile::tempdir().unwrap();
        let first = Lock::take(directory.path()).unwrap();
        let Err(Error::Other { cause, .. }) = Lock::take(directory.path()) else { panic!("two at a time") };
        assert_eq!(cause, format!("another kk works there (process {})", std::process::id()));
        drop(first);
        Lock::take(directory.path()).unwrap();
    }
}
