//! Create directories, so that they are recorded, and go again when they were not there before.

use std::fmt::Write as _;

use kk_connector::quote;
use kk_engine::{HostWork, Task, actions::Command};

use crate::Target;

/// Directories that Kubernetes' programs would otherwise make by themselves, with modes that they may change later:
/// only a missing one is a difference.
pub(crate) fn directories(target: &Target) -> Vec<String> {
    let fixed = [
        "/etc/kubernetes",
        "/var/lib/kubelet",
        "/var/lib/cni",
        "/etc/cni/net.d",
        "/opt/cni/bin",
        "/usr/libexec/kubernetes/kubelet-plugins/volume/exec",
        "/var/log/pods",
        "/var/log/containers",
    ];
    fixed.into_iter().map(str::to_owned).chain([target.spec.registry.containerd_data_dir.clone()]).collect()
}

/// On every node.
pub(super) fn task(target: &Target) -> Task {
    let mut task = Task::new("create_directories", "Create directories");
    for host in target.spec.nodes() {
        let mut script = String::new();
        for path in directories(target) {
            if !target.facts(host).files.contains_key(&path) {
                let _ = writeln!(script, "kk_dir {} 755 root:root", quote(&path));
            }
        }
        if !script.is_empty() {
            let action = Command::new("make directories of Kubernetes", script);
            task = task.on(&host.name, HostWork::new(vec![Box::new(action)]));
        }
    }
    task
}
