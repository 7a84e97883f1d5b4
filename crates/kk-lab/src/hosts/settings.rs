//! Settings of a host, stored in its directory so that the host boots again unchanged.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

const FILE: &str = "settings.json";

/// The base of the host's file system.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Base {
    /// A container's tree of files.
    Tree(PathBuf),
    /// A virtual machine's disk and kernel.
    Disk { disk: PathBuf, kernel: PathBuf, initrd: PathBuf },
}

/// How one host is booted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) base: Base,
    /// A second network card, which has the default route.
    pub(crate) second_network: bool,
    /// Processors that it may use, in parts of one.
    pub(crate) cpus: Option<f64>,
    /// Additional time of a packet to the host and back.
    pub(crate) delay_ms: Option<u32>,
}

impl Settings {
    /// From switching on to an answer over SSH: 3 to 4 s for three containers at once on two cores, 13 to 44 s for an
    /// emulated machine, and longer for a host that may use little.
    pub(crate) fn boot_patience(&self) -> Duration {
        let usual = match self.base {
            Base::Tree(_) => 90,
            Base::Disk { .. } => 400,
        };
        Duration::from_secs(if self.cpus.is_some() { 4 * usual } else { usual })
    }

    pub(crate) fn save(&self, directory: &Path) -> Result<()> {
        fs::write(directory.join(FILE), serde_json::to_string_pretty(self)?)
            .with_context(|| format!("cannot write {}", directory.join(FILE).display()))
    }

    /// Errors: the host was never booted.
    pub(crate) fn load(directory: &Path) -> Result<Self> {
        let text = fs::read(directory.join(FILE))
            .with_context(|| format!("there is no host in {}\nhint: `kk-lab up`", directory.display()))?;
        serde_json::from_slice(&text)
            .with_context(|| format!("cannot read {}", directory.join(FILE).display()))
    }
}
