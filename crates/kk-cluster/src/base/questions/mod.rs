//! Questions whose answers decide which hosts take part in a command.

mod began;
pub(crate) mod ca_rotation;
mod cgroup_driver;
mod credentials;
mod settings;

use kk_engine::{Question, question};

pub(crate) use began::{BEGAN, PRINT_BEGAN};
pub(crate) use cgroup_driver::CGROUP_DRIVER;
pub(crate) use credentials::CREDENTIALS;
pub(crate) use settings::{SETTINGS, etcd_servers};

/// "No" after a boot while the API still lists containers from before the boot. The snippet of a node is in
/// `nodes/kubelets/pods_known.rs`.
pub(crate) const PODS_KNOWN: Question<bool> = Question::new("pods_known", "echo yes", question::yes_or_no);

/// The id of the machine; empty if the host has no machine id.
pub(crate) const MACHINE_ID: Question<String> =
    Question::new("machine_id", "cat /etc/machine-id 2>/dev/null || :", question::text);
