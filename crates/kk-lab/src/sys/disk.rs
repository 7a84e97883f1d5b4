//! Checks the free disk before anything starts: a build that fails half-way costs minutes.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::sys::instance;

const GIB: u64 = 1 << 30;

/// Bytes that a host with a cluster on it takes.
pub(crate) fn per_host() -> u64 {
    2 * GIB
}

/// Bytes that Go's caches take while everything is built.
pub(crate) fn for_build() -> u64 {
    8 * GIB
}

/// Bytes of finished programs, mirror, images and root file system.
pub(crate) fn for_cache() -> u64 {
    4 * GIB
}

/// Errors: less than `needed` bytes are free where `directory` is or will be.
pub(crate) fn ensure_free(directory: &Path, needed: u64, what: &str) -> Result<()> {
    let there = directory.ancestors().find(|ancestor| ancestor.exists()).context("no such file system")?;
    let free = kk_util::free_space(there)?;
    ensure!(
        free >= needed,
        "{what} need about {} GiB in {}, and {} GiB are free\nhint: make room there{}",
        needed.div_ceil(GIB),
        directory.display(),
        free / GIB,
        if directory.starts_with(instance::state_directory()) {
            ""
        } else {
            ", or name another directory by KK_LAB_CACHE"
        }
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_is_said_with_both_figures() {
        let error =
            ensure_free(Path::new("/no/such/directory"), u64::MAX, "the hosts").unwrap_err().to_string();
        assert!(error.contains("need about") && error.contains("are free"), "{error}");
        assert!(ensure_free(Path::new("/"), 1, "the hosts").is_ok());
    }
}
