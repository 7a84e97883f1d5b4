//! Files and directories that are either complete or absent.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kk_util::write_private;

use crate::sys::run::{command, output};

/// Complete or absent, because a registry may be reading.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> Result<()> {
    fs::create_dir_all(path.parent().context("a file has a directory")?)?;
    let unfinished = unfinished(path)?;
    fs::write(&unfinished, content).with_context(|| format!("cannot write {}", unfinished.display()))?;
    fs::rename(&unfinished, path)?;
    Ok(())
}

/// A new name in the same directory as `path`. An existing file is removed, never written through: it could be a hard link to a
/// program.
pub(crate) fn unfinished(path: &Path) -> Result<PathBuf> {
    let mut name = path.as_os_str().to_owned();
    name.push(".unfinished");
    match fs::remove_file(&name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", name.display()))
        }
        _ => Ok(name.into()),
    }
}

/// Renames a finished directory to its final name after all its data is on the disk: after a power cut, it is either complete or
/// absent.
pub(crate) fn finish(unfinished: &Path, directory: &Path) -> Result<()> {
    fs::create_dir_all(directory.parent().context("the cache has a directory")?)?;
    output(command("sync", ["--file-system"]).arg(unfinished))?;
    fs::rename(unfinished, directory).with_context(|| format!("cannot create {}", directory.display()))
}

/// Removes a directory with its contents; a missing directory is no error.
pub(crate) fn remove_if_there(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", directory.display()))
        }
        _ => Ok(()),
    }
}

/// Readable only by root from the first byte, and either complete or absent.
pub(crate) fn write_secret(path: &Path, text: &str) -> Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    }
    write_private(path, text).with_context(|| format!("cannot write {}", path.display()))
}
