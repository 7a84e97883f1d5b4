//! The tree of files below the overlays of containers.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::base::{PACKAGES, bootstrap};
use crate::sys::files::{finish, remove_if_there};
use crate::sys::hash;
use crate::sys::paths::Paths;
use crate::sys::run::{command, output};
use crate::sys::say::Step;

/// Where the tree of this release is or will be.
pub(crate) fn path(paths: &Paths, suite: &str) -> PathBuf {
    paths.rootfs().join(hash::of_text(&format!("{suite} {PACKAGES}")))
}

/// The tree of this release, built when the cache has none of this recipe.
pub(crate) fn ensure(paths: &Paths, suite: &str) -> Result<PathBuf> {
    let directory = path(paths, suite);
    if directory.exists() {
        return Ok(directory);
    }
    let _alone = paths.lock("rootfs")?;
    if directory.exists() {
        return Ok(directory);
    }
    let step =
        Step::begin(&format!("building the root file system of the hosts (Debian {suite})"), "about 40 s");
    let unfinished = paths.unfinished();
    fs::create_dir_all(&unfinished)?;
    let tar = unfinished.join("rootfs.tar");
    let tree = unfinished.join("rootfs");
    remove_if_there(&tree)?;
    bootstrap(suite, PACKAGES, &tar)?;
    unpack(&tar, &tree)?;
    fs::remove_file(&tar)?;
    finish(&tree, &directory)?;
    step.done();
    Ok(directory)
}

/// Device nodes are left out: the container gets its own, and a small machine may not be able to create any.
pub(crate) fn unpack(tar: &Path, tree: &Path) -> Result<()> {
    fs::create_dir_all(tree)?;
    output(
        command("tar", ["--extract", "--numeric-owner", "--exclude=./dev/*", "--file"])
            .arg(tar)
            .arg("--directory")
            .arg(tree),
    )?;
    Ok(())
}
