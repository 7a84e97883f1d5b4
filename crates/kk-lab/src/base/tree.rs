//! The Debian root file system that every host starts from: built once by mmdebstrap, never changed afterwards
//! (hosts lie above it as overlays).

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::paths::{Paths, finish, remove_if_there};
use crate::run::{bound, command, output};
use crate::say::Step;
use crate::{hash, packages};

const SUITE: &str = "bookworm";
/// What a server has, and what kubeadm and the network plugins look for.
const PACKAGES: &str = "systemd,systemd-sysv,dbus,udev,openssh-server,sudo,iproute2,iptables,ca-certificates,curl,\
    socat,conntrack,ebtables,ethtool,ipset,kmod,procps,openssl";

/// Where the root file system of this recipe is or will be.
pub(crate) fn folder(paths: &Paths) -> PathBuf {
    paths.rootfs().join(hash::of_text(&format!("{SUITE} {PACKAGES}")))
}

/// The unpacked root file system, built when the cache has none of this recipe.
pub(crate) fn ensure(paths: &Paths) -> Result<PathBuf> {
    let folder = folder(paths);
    if folder.exists() {
        return Ok(folder);
    }
    let _alone = paths.lock("rootfs")?;
    if folder.exists() {
        return Ok(folder);
    }
    packages::install(packages::ROOT_FS)?;
    let step = Step::begin("building the root file system of the hosts", "about 40 s");
    let unfinished = paths.unfinished();
    fs::create_dir_all(&unfinished)?;
    let tar = unfinished.join("rootfs.tar");
    let tree = unfinished.join("rootfs");
    remove_if_there(&tree)?;
    let mut words = vec!["--variant=minbase".to_owned(), format!("--include={PACKAGES}"), SUITE.to_owned()];
    words.push(tar.display().to_string());
    words.extend(archive());
    output(bound("mmdebstrap").args(words)).context("cannot build the root file system")?;
    unpack(&tar, &tree)?;
    fs::remove_file(&tar)?;
    finish(&tree, &folder)?;
    step.done();
    Ok(folder)
}

/// Device nodes are left out: the container gets its own, and a small machine may not make any.
fn unpack(tar: &Path, tree: &Path) -> Result<()> {
    fs::create_dir_all(tree)?;
    output(
        command("tar", ["--extract", "--numeric-owner", "--exclude=./dev/*", "--file"])
            .arg(tar)
            .arg("--directory")
            .arg(tree),
    )?;
    Ok(())
}

/// The Debian archive this machine itself uses; none (mmdebstrap's own choice) when it is not this Debian.
fn archive() -> Option<String> {
    let format = "$(ORIGIN) $(CODENAME) $(COMPONENT) $(REPO_URI)";
    let known =
        output(&mut command("apt-get", ["indextargets", "--format", format, "Created-By: Packages"])).ok()?;
    let wanted = format!("Debian {SUITE} main ");
    known.lines().find_map(|line| line.strip_prefix(&wanted)).map(|uri| uri.trim().to_owned())
}
