//! The facts of a host, gathered by one script in one round trip.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Owned,
    question::{Asked, Replies},
};

/// The subjects of the probe, in addition to the facts that it always gathers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeSpec {
    /// Absolute paths; globs of one directory level (`/opt/cni/bin/*`) are allowed.
    pub files: BTreeSet<String>,
    /// systemd units.
    pub units: BTreeSet<String>,
    /// Names of binaries to search on the path.
    pub tools: BTreeSet<String>,
    /// Kernel settings by dotted name.
    pub sysctls: BTreeSet<String>,
    /// TCP ports that must be free or used by kk.
    pub ports: BTreeSet<u16>,
    /// User names.
    pub users: BTreeSet<String>,
    /// Kernel modules.
    pub modules: BTreeSet<String>,
    /// Paths for which the size and the free space of the file system are gathered.
    pub disks: BTreeSet<String>,
    /// Further questions by name; added by [`ProbeSpec::ask`].
    pub questions: BTreeMap<String, Asked>,
}

impl ProbeSpec {
    /// Adds all subjects of another spec.
    pub fn merge(&mut self, other: &Self) {
        self.files.extend(other.files.iter().cloned());
        self.units.extend(other.units.iter().cloned());
        self.tools.extend(other.tools.iter().cloned());
        self.sysctls.extend(other.sysctls.iter().cloned());
        self.ports.extend(&other.ports);
        self.users.extend(other.users.iter().cloned());
        self.modules.extend(other.modules.iter().cloned());
        self.disks.extend(other.disks.iter().cloned());
        self.questions.extend(other.questions.iter().map(|(name, asked)| (name.clone(), asked.clone())));
    }
}

/// The facts of a host. Plain data; checks are pure functions of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Facts {
    /// `uname -n`.
    pub hostname: String,
    /// `ID` of os-release: `debian`.
    pub os_id: String,
    /// `VERSION_ID` of os-release: `12`.
    pub os_version: String,
    /// `PRETTY_NAME` of os-release.
    pub os_name: String,
    /// `uname -r`.
    pub kernel: String,
    /// `uname -m` in Go's terms: `amd64`, `arm64`; other values unchanged.
    pub arch: String,
    /// Online processors.
    pub cpus: u32,
    /// Memory in KiB.
    pub memory_kib: u64,
    /// Active swap devices and files.
    pub swaps: Vec<String>,
    /// The host's clock minus the control machine's, in milliseconds: the middle of the range that the probe's times permit.
    pub clock_skew_ms: i64,
    /// How far [`Facts::clock_skew_ms`] may be wrong in either direction, in milliseconds: half of the probe's time in transit.
    pub clock_uncertainty_ms: i64,
    /// Whether `/sys/fs/cgroup` is a unified (v2) hierarchy.
    pub cgroup_v2: bool,
    /// Whether systemd can create cgroups in the hierarchies that the kubelet needs.
    pub systemd_cgroups: bool,
    /// Whether root may raise resource limits (`CAP_SYS_RESOURCE`).
    pub can_raise_limits: bool,
    /// Whether PID 1 is systemd.
    pub systemd: bool,
    /// Name servers of /etc/resolv.conf.
    pub nameservers: Vec<String>,
    /// Addresses of all interfaces.
    pub addresses: BTreeSet<String>,
    /// `enforcing`, `permissive`, `disabled`, or empty on a host without `SELinux`.
    pub selinux: String,
    /// Requested kernel modules that are loaded or built in.
    pub modules: BTreeSet<String>,
    /// Kernel features that are present or can be loaded with `modprobe`, by name: `ipvs`, `nftables`, `overlay`, `br_netfilter`,
    /// `vxlan`, `ipip` (if requested), `memory_cgroup`.
    pub features: BTreeSet<String>,
    /// Binaries found: name → path.
    pub tools: BTreeMap<String, String>,
    /// Requested units; a unit without a file is absent.
    pub units: BTreeMap<String, UnitFact>,
    /// Requested files; a file that does not exist is absent.
    pub files: BTreeMap<String, FileFact>,
    /// Requested kernel settings; a setting that the kernel lacks is absent.
    pub sysctls: BTreeMap<String, String>,
    /// Requested kernel settings that root cannot write.
    pub sysctls_read_only: BTreeSet<String>,
    /// Requested ports that are in use: port → process that listens on it.
    pub ports: BTreeMap<u16, String>,
    /// Requested users that exist.
    pub users: BTreeSet<String>,
    /// Requested path → (size, free) of its file system in KiB.
    pub disks: BTreeMap<String, (u64, u64)>,
    /// `/etc/kubekey/owned`: the changes that kk made on this host, and for which cluster.
    pub owned: Owned,
    /// The replies to [`ProbeSpec::questions`]; read with [`Facts::answer`].
    pub replies: Replies,
}

impl Facts {
    /// Whether the file, link or directory was made or replaced by kk.
    pub fn owns(&self, path: &str) -> bool {
        self.owned.owns(path)
    }
}

/// A systemd unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UnitFact {
    /// `ActiveState` is `active`.
    pub active: bool,
    /// `UnitFileState` is `enabled`.
    pub enabled: bool,
    /// `NeedDaemonReload`: the file on disk is newer than the version that systemd has read.
    pub stale: bool,
    /// Milliseconds of uptime (without time suspended) at which it became active. A configuration file with a later
    /// [`FileFact::written_ms`] is not in effect yet: a run may have been killed between the two.
    pub active_since_ms: u64,
    /// Milliseconds of uptime at which its state last changed. A reload is such a change.
    pub changed_since_ms: u64,
}

/// A file, directory or link.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FileFact {
    /// SHA-256 of the content in lower-case hex; empty for anything but a regular file.
    pub sha256: String,
    /// Permission bits, octal as text: `644`.
    pub mode: String,
    /// `user:group`.
    pub owner: String,
    /// `file`, `dir`, `link`, `other`.
    pub kind: String,
    /// The target of a link.
    pub link: String,
    /// Milliseconds of uptime at which the content was last written; 0 if before boot, or if unknown because the clock was set
    /// back since.
    pub written_ms: u64,
}
