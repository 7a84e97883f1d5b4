//! `spec.system`, as written in the file and as used by the other crates.

use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What is done to the operating system of each host.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct System {
    /// Time servers: addresses or names of hosts of the cluster.
    pub ntp_servers: Vec<String>,
    /// Time zone, such as `Europe/Berlin`.
    pub timezone: Option<String>,
    /// Further packages for hosts with rpm.
    pub rpms: Vec<String>,
    /// Further packages for hosts with deb.
    pub debs: Vec<String>,
    /// Scripts to run before anything is installed.
    pub pre_install: Vec<CustomScript>,
    /// Scripts to run when the cluster is there.
    pub post_cluster_install: Vec<CustomScript>,
    /// Scripts to run at the end.
    pub post_install: Vec<CustomScript>,
    /// Leave host name, swap, `SELinux`, firewall, kernel modules, kernel settings and limits as they are. What the cluster
    /// itself needs is still made: its lines of /etc/hosts, etcd's user, its directories.
    #[serde(rename = "skipConfigureOS")]
    pub skip_configure_os: bool,
    /// Kernel settings in addition to the installer's own; they win where both name a key.
    pub sysctl: BTreeMap<String, String>,
    /// Set each machine's host name to the host's name.
    pub set_hostname: bool,
    /// Stop and disable firewalld and ufw.
    pub disable_firewall: bool,
    /// Set `SELinux` to permissive where it is enforcing. If false, `SELinux` does not change. It then needs a policy for containers
    /// on the hosts (package `container-selinux`), and does not confine containers.
    #[serde(rename = "relaxSELinux")]
    pub relax_selinux: bool,
}

impl Default for System {
    fn default() -> Self {
        Self {
            ntp_servers: Vec::new(),
            timezone: None,
            rpms: Vec::new(),
            debs: Vec::new(),
            pre_install: Vec::new(),
            post_cluster_install: Vec::new(),
            post_install: Vec::new(),
            skip_configure_os: false,
            sysctl: BTreeMap::new(),
            set_hostname: true,
            disable_firewall: false,
            relax_selinux: true,
        }
    }
}

/// A script of the user's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct CustomScript {
    /// Shown while it runs.
    pub name: Option<String>,
    /// The script.
    pub bash: Option<String>,
    /// The role group on whose hosts it runs; all hosts when absent.
    pub role: Option<String>,
    /// Files to bring along.
    pub materials: Vec<String>,
}
