//! Settings of the operating system.

use std::collections::BTreeMap;

/// Changes to the operating system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct System {
    /// Leave users, kernel settings, limits, swap and the like as they are.
    pub skip_configure_os: bool,
    /// Kernel settings in addition to the program's own; they win where both name a key.
    pub sysctl: BTreeMap<String, String>,
    /// Set each machine's host name to the host's name.
    pub set_hostname: bool,
    /// Stop and disable `firewalld` and `ufw`.
    pub disable_firewall: bool,
}
