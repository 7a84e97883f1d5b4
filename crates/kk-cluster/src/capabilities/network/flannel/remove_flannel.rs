//! Remove flannel from the kernel and the disk.

use kk_config::FlannelBackend;
use kk_engine::{HostWork, Task, actions::Command};

use super::backend;
use crate::{
    inputs::Inputs,
    shell::{EMPTY, REMOVE_CHAINS, script},
};

/// On every node.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("remove_flannel", "Remove flannel");
    // Only this backend makes routes of its own; the others' go with their links.
    let routes = match backend(inputs.spec) {
        Some(FlannelBackend::HostGw) => inputs.spec.network.pods.to_string(),
        _ => String::new(),
    };
    let text = script(
        &[("routes", &routes)],
        &format!("{EMPTY}{REMOVE_CHAINS}{}", include_str!("remove_flannel.sh")),
    );
    for (host, _) in inputs.nodes() {
        let remove = Command::new("remove rules, links and files of flannel", text.clone());
        task = task.on(&host.name, HostWork::new(vec![Box::new(remove)]));
    }
    task
}
