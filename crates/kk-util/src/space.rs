//! The free space of file systems.

use std::{io, path::Path};

/// Bytes that a user other than root can still write to the file system of an existing path.
///
/// # Errors
/// The file system cannot be queried.
pub fn free_space(path: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(path)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_does_not_exist_is_an_error_and_an_existing_one_has_a_number() {
        let directory = tempfile::tempdir().unwrap();
        assert!(free_space(directory.path()).is_ok_and(|bytes| bytes < u64::MAX));
        let error = free_space(&directory.path().join("none")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
