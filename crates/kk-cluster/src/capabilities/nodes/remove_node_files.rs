//! Remove files that the cluster's programs wrote on a node.

use kk_engine::{HostWork, Kind, Task, actions::Command};

use crate::{
    inputs::Inputs,
    shell::{EMPTY, script},
};

/// Never across a file system: a volume that is still mounted keeps its data.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("remove_node_files", "Remove files of the node");
    for (host, facts) in inputs.nodes() {
        // Where it was there before, other programs use CNI, too.
        let made_cni = facts.owned.has(Kind::Dir, "/var/lib/cni");
        let text = script(
            &[("cni", if made_cni { "yes" } else { "" })],
            &format!("{EMPTY}{}", include_str!("remove_node_files.sh")),
        );
        let remove = Command::new("remove files of the cluster", text);
        task = task.on(&host.name, HostWork::new(vec![Box::new(remove)]));
    }
    task
}
