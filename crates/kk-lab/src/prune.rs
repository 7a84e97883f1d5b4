//! `mirror prune`: removes what earlier versions of the checkout needed. The cache keeps these files until then, because two
//! checkouts may share it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::base;
use crate::mirror::versions::Versions;
use crate::mirror::{programs, servers};
use crate::sys::files::remove_if_there;
use crate::sys::paths::{self, Paths};
use crate::sys::run::{command, output};
use crate::sys::{instance, net, say};

/// Removes what this checkout does not need. Errors: the lab is up, because it serves from the cache.
pub(crate) fn run(paths: &Paths, versions: &Versions) -> Result<()> {
    crate::sys::need_root()?;
    let _lab = paths::lock_lab()?;
    let others = instance::other_states();
    ensure!(
        !net::is_up()? && others.is_empty(),
        "a lab is up and serves from the cache\nhint: `kk-lab down` for each lab"
    );
    let _build = paths.lock("build")?;
    let all = versions.builds(&paths.data, versions.kubernetes()?, &versions.on_demand())?;
    let mut kept = programs::directories(paths, versions, &all)?;
    kept.push(servers::registry_directory(paths));
    for suite in base::SUITES {
        kept.extend([base::tree::path(paths, suite), base::disk_image::path(paths, suite)]);
    }
    let old = unwanted(&[paths.programs(), paths.rootfs()], &kept)?;
    if !old.is_empty() {
        // Rebuilt from the programs in seconds; no record shows which program an image was made for.
        for published in [paths.mirror(), paths.registry(), paths.published()] {
            remove(&published)?;
        }
    }
    old.iter().try_for_each(|directory| remove(directory))?;
    remove(&paths.unfinished())
}

/// Entries of `directories` that are not to be kept.
fn unwanted(directories: &[PathBuf], kept: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for directory in directories.iter().filter(|directory| directory.exists()) {
        for entry in
            fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))?
        {
            found.push(entry?.path());
        }
    }
    found.retain(|path| !kept.contains(path));
    Ok(found)
}

fn remove(directory: &Path) -> Result<()> {
    if directory.exists() {
        let size = output(command("du", ["--summarize", "--human-readable"]).arg(directory))?;
        say::progress(&format!("removing {}", size.trim().replace('\t', " ")));
    }
    remove_if_there(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_not_kept_is_unwanted() {
        let directory = tempfile::tempdir().unwrap();
        let programs = directory.path().join("programs");
        let [new, old] = ["etcd-2-aa", "etcd-1-bb"].map(|name| programs.join(name));
        fs::create_dir_all(&new).unwrap();
        fs::create_dir_all(&old).unwrap();
        let directories = [programs, directory.path().join("not-there")];
        assert_eq!(unwanted(&directories, std::slice::from_ref(&new)).unwrap(), std::slice::from_ref(&old));
    }
}
