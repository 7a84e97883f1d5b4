//! The cgroup driver of a running cluster.

use kk_engine::{Question, question};

/// `systemd` or `cgroupfs`, from the settings of a node's kubelet; empty if there are no settings.
pub(crate) const CGROUP_DRIVER: Question<String> = Question::new(
    "cgroup_driver",
    "sed -n 's/^cgroupDriver: *//p' /var/lib/kubelet/config.yaml 2>/dev/null || :",
    question::text,
);
