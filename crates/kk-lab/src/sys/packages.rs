//! Debian packages that the lab needs. apt is called only if a package is missing.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::sys::paths;
use crate::sys::run::{command, output, succeeds};
use crate::sys::say::Step;

/// The probe for a package, and the package's name.
pub(crate) type Need = (Probe, &'static str);

/// How to see whether a package is there.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Probe {
    Program(&'static str),
    File(&'static str),
}

/// For hosts and their network.
pub(crate) const HOSTS: &[Need] = &[
    (Probe::Program("systemd-nspawn"), "systemd-container"),
    (Probe::Program("ssh"), "openssh-client"),
    (Probe::Program("ip"), "iproute2"),
    (Probe::Program("sysctl"), "procps"),
    (Probe::Program("useradd"), "passwd"),
];

/// For the root file system of the hosts.
pub(crate) const ROOT_FS: &[Need] = &[
    (Probe::Program("mmdebstrap"), "mmdebstrap"),
    (Probe::File("/usr/share/keyrings/debian-archive-keyring.gpg"), "debian-archive-keyring"),
];

/// For the disk of virtual machines.
pub(crate) const DISK_IMAGE: &[Need] = &[(Probe::Program("mke2fs"), "e2fsprogs")];

/// For virtual machines.
pub(crate) const VIRTUAL_MACHINES: &[Need] =
    &[(Probe::Program("qemu-system-x86_64"), "qemu-system-x86"), (Probe::Program("qemu-img"), "qemu-utils")];

/// For latency between hosts.
pub(crate) const DELAY: &[Need] = &[(Probe::Program("python3"), "python3")];

/// For building runc and flanneld, which contain C, and our `pause`.
pub(crate) const BUILD: &[Need] = &[
    (Probe::Program("gcc"), "gcc"),
    (Probe::File("/usr/include/stdio.h"), "libc6-dev"),
    (Probe::File("/usr/include/seccomp.h"), "libseccomp-dev"),
    (Probe::Program("pkg-config"), "pkg-config"),
];

/// For a machine without any Go; this version is only used to fetch the required one.
pub(crate) const GO: &[Need] = &[(Probe::Program("go"), "golang-go")];

impl Probe {
    fn found(self) -> bool {
        match self {
            Self::Program(name) => succeeds(&mut command("sh", ["-c", "command -v \"$1\"", "sh", name])),
            Self::File(path) => Path::new(path).exists(),
        }
    }
}

fn missing(needs: &[Need]) -> Vec<&'static str> {
    needs.iter().filter(|(probe, _)| !probe.found()).map(|(_, package)| *package).collect()
}

/// For users who may not install packages. Errors: something of `needs` is missing; all missing packages are named.
pub(crate) fn require(needs: &[Need]) -> Result<()> {
    let missing = missing(needs).join(" ");
    ensure!(
        missing.is_empty(),
        "Debian packages are missing: {missing}\nhint: as root, apt-get install --no-install-recommends {missing}"
    );
    Ok(())
}

/// Installs what of `needs` is missing.
pub(crate) fn install(needs: &[Need]) -> Result<()> {
    if missing(needs).is_empty() {
        return Ok(());
    }
    // Another lab may be installing the same packages, and apt waits for only some of its own locks.
    let _alone = paths::lock_machine()?;
    let missing = missing(needs);
    if missing.is_empty() {
        return Ok(());
    }
    let step = Step::begin(&format!("installing Debian packages: {}", missing.join(" ")), "");
    apt(&["update", "-q"])?;
    let mut words = vec!["install", "-q", "-y", "--no-install-recommends"];
    words.extend(&missing);
    apt(&words).with_context(|| format!("cannot install {}", missing.join(" ")))?;
    step.done();
    Ok(())
}

fn apt(words: &[&str]) -> Result<()> {
    // A machine that has just started may still be busy with its own upgrades.
    let patience = ["-o", "DPkg::Lock::Timeout=300"];
    output(command("apt-get", patience).args(words).env("DEBIAN_FRONTEND", "noninteractive"))
        .context("the lab needs Debian or Ubuntu with working apt sources")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_missing_is_named_at_once() {
        let needs = [
            (Probe::File("/"), "present"),
            (Probe::File("/no/such/file"), "some-headers"),
            (Probe::Program("no-such-program"), "some-tool"),
        ];
        let error = require(&needs).unwrap_err().to_string();
        assert!(error.contains("missing: some-headers some-tool\n"), "{error}");
        assert!(require(&needs[..1]).is_ok());
    }
}
