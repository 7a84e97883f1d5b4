//! Operating systems of hosts whose packages an offline bundle contains.

use std::collections::BTreeSet;

use super::Arch;

/// An operating system whose packages a bundle must contain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OperatingSystem {
    /// `ID` of its os-release: `debian`.
    pub id: String,
    /// `VERSION_ID` of its os-release: `12`.
    pub version: String,
    /// Architecture of the hosts.
    pub arch: Arch,
    /// Lines of a sources file, each `URI SUITE [COMPONENT…]`. If empty, the sources of the machine that makes the export. With
    /// rpm: addresses of repositories.
    pub sources: Vec<String>,
    /// File with the keys that sign its lists (with rpm: its packages); the default is the distribution's file.
    pub keyring: Option<String>,
    /// The packages. Their dependencies are added.
    pub packages: BTreeSet<String>,
}

/// Id, version and code name, which the archives of a distribution use in their paths.
const RELEASES: [(&str, &str, &str); 6] = [
    ("debian", "11", "bullseye"),
    ("debian", "12", "bookworm"),
    ("debian", "13", "trixie"),
    ("ubuntu", "20.04", "focal"),
    ("ubuntu", "22.04", "jammy"),
    ("ubuntu", "24.04", "noble"),
];

/// Distributions whose packages are rpm, installed by dnf.
const DNF: [&str; 14] = [
    "alinux",
    "almalinux",
    "amzn",
    "anolis",
    "centos",
    "fedora",
    "kylin",
    "ol",
    "openEuler",
    "opencloudos",
    "rhel",
    "rocky",
    "tencentos",
    "euleros",
];

/// Distributions whose packages are rpm, installed by zypper.
const ZYPPER: [&str; 4] = ["opensuse-leap", "opensuse-tumbleweed", "sled", "sles"];

/// Whether the distribution with this `ID` of os-release has rpm packages and dnf.
pub fn has_dnf(id: &str) -> bool {
    DNF.contains(&id)
}

impl OperatingSystem {
    /// The code name of its release; `None` if unknown.
    pub fn code_name(&self) -> Option<&'static str> {
        let known = RELEASES.iter().find(|(id, version, _)| *id == self.id && *version == self.version);
        known.map(|(_, _, name)| *name)
    }

    /// File with the keys that sign its lists.
    pub fn keyring(&self) -> String {
        let of_distribution = || format!("/usr/share/keyrings/{}-archive-keyring.gpg", self.id);
        self.keyring.clone().unwrap_or_else(of_distribution)
    }

    /// Whether its packages are rpm, installed by dnf.
    pub fn is_rpm(&self) -> bool {
        has_dnf(&self.id)
    }

    /// Whether its packages are rpm, installed by zypper.
    pub(crate) fn is_zypper(&self) -> bool {
        ZYPPER.contains(&self.id.as_str())
    }
}

impl std::fmt::Display for OperatingSystem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.id, self.version, self.arch)
    }
}
