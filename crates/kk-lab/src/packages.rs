//! Debian packages the lab stands on. Nothing is asked of apt while nothing is missing.

use std::path::Path;

use anyhow::{Context, Result};

use crate::run::{command, output, succeeds};
use crate::say::Step;

/// What tells that a package is there, and its name.
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

/// For building runc and flanneld, which contain C, and our `pause`.
pub(crate) const BUILD: &[Need] = &[
    (Probe::Program("gcc"), "gcc"),
    (Probe::File("/usr/include/stdio.h"), "libc6-dev"),
    (Probe::File("/usr/include/seccomp.h"), "libseccomp-dev"),
    (Probe::Program("pkg-config"), "pkg-config"),
];

/// For a machine without any Go; what it brings only fetches the version that is needed.
pub(crate) const GO: &[Need] = &[(Probe::Program("go"), "golang-go")];

impl Probe {
    fn found(self) -> bool {
        match self {
            Self::Program(name) => succeeds(&mut command("sh", ["-c", "command -v \"$1\"", "sh", name])),
            Self::File(path) => Path::new(path).exists(),
        }
    }
}

/// Installs what of `needs` is missing.
pub(crate) fn ensure(needs: &[Need]) -> Result<()> {
    let missing: Vec<&str> =
        needs.iter().filter(|(probe, _)| !probe.found()).map(|(_, package)| *package).collect();
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
    output(command("apt-get", words).env("DEBIAN_FRONTEND", "noninteractive"))
        .context("the lab needs Debian or Ubuntu with working apt sources")?;
    Ok(())
}
