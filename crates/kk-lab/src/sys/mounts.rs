//! Mounts of this machine, as the kernel lists them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::mount::{UnmountFlags, unmount};

use crate::sys::files::remove_if_there;

/// Mount points at `directory` or below it, innermost first.
pub(crate) fn under(directory: &Path) -> Result<Vec<PathBuf>> {
    let table = fs::read_to_string("/proc/self/mountinfo").context("cannot read the table of mounts")?;
    Ok(points_under(&table, directory))
}

fn points_under(table: &str, directory: &Path) -> Vec<PathBuf> {
    // The kernel lists mounts in the order they were made, so the reverse order unmounts children first.
    let points = table.lines().rev().filter_map(|line| line.split(' ').nth(4)).map(PathBuf::from);
    points.filter(|point| point.starts_with(directory)).collect()
}

/// Unmounts everything at `directory` and below. Lazily: a process whose working directory is there must not keep the lab up.
pub(crate) fn detach_all(directory: &Path) -> Result<()> {
    for point in under(directory)? {
        unmount(&point, UnmountFlags::DETACH)
            .with_context(|| format!("cannot unmount {}", point.display()))?;
    }
    Ok(())
}

/// Removes a directory after its mounts; refuses while any is left, or it would empty what is mounted there.
pub(crate) fn remove_directory(directory: &Path) -> Result<()> {
    detach_all(directory)?;
    anyhow::ensure!(under(directory)?.is_empty(), "something is still mounted under {}", directory.display());
    remove_if_there(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mounts_of_the_directory_are_listed_innermost_first() {
        let table = "1 0 0:1 / / rw - ext4 /dev/a rw\n\
                     2 1 0:2 / /lab/a rw - overlay o rw\n\
                     3 2 0:3 / /lab/a/b rw - tmpfs t rw\n\
                     4 1 0:4 / /laboratory rw - tmpfs t rw";
        assert_eq!(points_under(table, Path::new("/lab")), [Path::new("/lab/a/b"), Path::new("/lab/a")]);
    }
}
