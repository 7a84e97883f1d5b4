//! Resources of this machine that the lab uses: programs, control groups, mounts, its network, files, free disk.

use anyhow::{Result, ensure};

pub(crate) mod background;
pub(crate) mod cgroup;
pub(crate) mod disk;
pub(crate) mod files;
pub(crate) mod hash;
pub(crate) mod inotify;
pub(crate) mod instance;
pub(crate) mod mounts;
pub(crate) mod net;
pub(crate) mod packages;
pub(crate) mod paths;
pub(crate) mod run;
pub(crate) mod say;

/// Errors: not root; nothing of the lab works without.
pub(crate) fn need_root() -> Result<()> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "the lab needs root: it makes namespaces, mounts and control groups\nhint: run it as root, by sudo for example"
    );
    Ok(())
}
