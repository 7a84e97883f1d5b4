//! Compares the free space of a file system with the size that is about to be written.

use std::io;
use std::path::Path;

const MEBIBYTE: u64 = 1 << 20;

/// Checks that the file system of a directory has this many free bytes.
///
/// # Errors
/// The space is too small ([`io::ErrorKind::StorageFull`]), or the file system cannot be queried.
pub(crate) fn require(directory: &Path, bytes: u64) -> io::Result<()> {
    let free = kk_util::free_space(directory)?;
    if bytes <= free {
        return Ok(());
    }
    let (needed, free) = (bytes.div_ceil(MEBIBYTE), free / MEBIBYTE);
    let message = format!("{needed} MiB are needed, and {free} MiB are free");
    Err(io::Error::new(io::ErrorKind::StorageFull, message))
}
