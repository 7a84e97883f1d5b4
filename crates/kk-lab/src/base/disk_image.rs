//! The base disk of virtual machines: Debian with its own kernel on ext4. A host's own files (name, address, key) are in an
//! archive on a second disk, which the first boot unpacks.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::base::{PACKAGES, bootstrap};
use crate::sys::files::{finish, remove_if_there};
use crate::sys::hash;
use crate::sys::packages;
use crate::sys::paths::Paths;
use crate::sys::run::{command, output};
use crate::sys::say::Step;

/// The kernel of Debian's cloud images, and the packages that make it boot.
const KERNEL: &str = "initramfs-tools,linux-image-cloud-amd64";
/// Sparse: only what is used takes room.
const SIZE: &str = "10G";

const SEED_UNIT: &str = include_str!("seed.service");
/// Keys are made at the first boot: no two hosts share one.
const SSH_KEYS: &str = "[Service]\nExecStartPre=\nExecStartPre=/usr/bin/ssh-keygen -A\n";

/// Enabled in the image, so that it starts at the first boot, too. At that boot, systemd has already decided what to start when
/// the host's archive is unpacked.
const NETWORK: &str = "systemd-networkd.service";

/// Disk, kernel and initial file system of one release.
#[derive(Debug, Clone)]
pub(crate) struct DiskImage {
    pub(crate) disk: PathBuf,
    pub(crate) kernel: PathBuf,
    pub(crate) initrd: PathBuf,
}

impl DiskImage {
    fn at(directory: &Path) -> Self {
        Self {
            disk: directory.join("disk.img"),
            kernel: directory.join("vmlinuz"),
            initrd: directory.join("initrd"),
        }
    }
}

/// Where the image of this release is or will be.
pub(crate) fn path(paths: &Paths, suite: &str) -> PathBuf {
    paths.rootfs().join(hash::of_text(&format!(
        "disk {suite} {PACKAGES} {KERNEL} {SIZE} {NETWORK} {SEED_UNIT}{SSH_KEYS}"
    )))
}

/// The image of this release, built when the cache has none of this recipe.
pub(crate) fn ensure(paths: &Paths, suite: &str) -> Result<DiskImage> {
    let directory = path(paths, suite);
    if directory.exists() {
        return Ok(DiskImage::at(&directory));
    }
    let _alone = paths.lock("rootfs")?;
    if directory.exists() {
        return Ok(DiskImage::at(&directory));
    }
    packages::install(packages::DISK_IMAGE)?;
    let step =
        Step::begin(&format!("building the disk of the virtual machines (Debian {suite})"), "about 60 s");
    let unfinished = paths.unfinished().join("disk");
    remove_if_there(&unfinished)?;
    fs::create_dir_all(&unfinished)?;
    let tree = unfinished.join("tree");
    bootstrap(suite, &format!("{PACKAGES},{KERNEL}"), &tree)?;
    prepare(&tree)?;
    let image = DiskImage::at(&unfinished);
    move_newest(&tree.join("boot"), "vmlinuz-", &image.kernel)?;
    move_newest(&tree.join("boot"), "initrd.img-", &image.initrd)?;
    output(command("truncate", ["--size", SIZE]).arg(&image.disk))?;
    output(command("mke2fs", ["-q", "-t", "ext4", "-d"]).args([&tree, &image.disk]))?;
    remove_if_there(&tree)?;
    finish(&unfinished, &directory)?;
    step.done();
    Ok(DiskImage::at(&directory))
}

fn prepare(tree: &Path) -> Result<()> {
    let units = tree.join("etc/systemd/system");
    fs::write(tree.join("etc/fstab"), "/dev/vda / ext4 errors=remount-ro 0 1\n")?;
    // Written by the first boot.
    fs::write(tree.join("etc/machine-id"), "")?;
    for entry in fs::read_dir(tree.join("etc/ssh"))?.flatten() {
        if entry.file_name().to_string_lossy().starts_with("ssh_host_") {
            fs::remove_file(entry.path())?;
        }
    }
    fs::create_dir_all(units.join("ssh.service.d"))?;
    fs::write(units.join("ssh.service.d/lab.conf"), SSH_KEYS)?;
    fs::write(units.join("lab-seed.service"), SEED_UNIT)?;
    fs::create_dir_all(units.join("sysinit.target.wants"))?;
    symlink("/etc/systemd/system/lab-seed.service", units.join("sysinit.target.wants/lab-seed.service"))?;
    let wanted = units.join("multi-user.target.wants");
    fs::create_dir_all(&wanted)?;
    symlink(format!("/lib/systemd/system/{NETWORK}"), wanted.join(NETWORK))?;
    for timer in ["apt-daily.timer", "apt-daily-upgrade.timer"] {
        symlink("/dev/null", units.join(timer))?;
    }
    Ok(())
}

/// A fresh image has one kernel.
fn move_newest(boot: &Path, prefix: &str, to: &Path) -> Result<()> {
    let mut found: Vec<PathBuf> = fs::read_dir(boot)?
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    let newest = found.pop().with_context(|| format!("the image has no {prefix}*"))?;
    fs::rename(&newest, to)?;
    Ok(())
}
