//! The Debian that hosts start from: a tree of files for containers, a disk image with a kernel for virtual machines. Built once
//! for each recipe by mmdebstrap, never changed afterwards.

use std::path::Path;

use anyhow::{Context, Result};

use crate::sys::packages;
use crate::sys::run::{bound, command, output};

pub(crate) mod disk_image;
pub(crate) mod tree;

/// The default release of hosts.
pub(crate) const SUITE: &str = "bookworm";

/// Releases that hosts can run.
pub(crate) const SUITES: [&str; 3] = ["bullseye", "bookworm", "trixie"];

/// Packages of a server, and packages that kubeadm, kube-proxy and the network plugins look for.
const PACKAGES: &str = "systemd,systemd-sysv,dbus,udev,openssh-server,sudo,iproute2,iptables,nftables,netbase,\
    ca-certificates,curl,socat,conntrack,ebtables,ethtool,ipset,kmod,procps,openssl";

/// Unpacks a Debian of `suite` with these packages into `target`: a directory, or an archive by its ending.
pub(crate) fn bootstrap(suite: &str, include: &str, target: &Path) -> Result<()> {
    packages::install(packages::ROOT_FS)?;
    let mut words = vec!["--variant=minbase".to_owned(), format!("--include={include}"), suite.to_owned()];
    words.push(target.display().to_string());
    words.extend(archive());
    output(bound("mmdebstrap").args(words)).with_context(|| format!("cannot build a Debian {suite}"))?;
    Ok(())
}

/// The archive that this machine itself uses; none (mmdebstrap's own choice) when it is no Debian.
fn archive() -> Option<String> {
    let format = "$(ORIGIN) $(COMPONENT) $(REPO_URI)";
    let known =
        output(&mut command("apt-get", ["indextargets", "--format", format, "Created-By: Packages"])).ok()?;
    let uris = known.lines().filter_map(|line| line.strip_prefix("Debian main "));
    // The mirror of this release serves other releases, too. Security updates and locally built packages are in separate
    // archives.
    uris.map(str::trim).find(|uri| uri.starts_with("http") && !uri.contains("security")).map(str::to_owned)
}
