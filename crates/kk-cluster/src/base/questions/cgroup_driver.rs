//! The cgroup driver of a cluster that runs.

use kk_engine::{Question, question};

/// `systemd` or `cgroupfs`, as the settings of a node's kubelet say; empty where there is none.
pub(crate) const CGROUP_DRIVER: Question<String> = Question::new(
    "cgroup_driver",
    "sed -n 's/^cgroupDriver: *//p' /var/lib/kubelet/config.yaml 2>/dev/null || :",
    question::text,
);
