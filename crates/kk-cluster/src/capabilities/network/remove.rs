//! Remove what a plugin made on nodes: the kernel's part of it, and what its programs wrote.

use kk_engine::{HostWork, Task, actions::Command};

use crate::{
    base::shell::{EMPTY, REMOVE_CHAINS},
    model::inputs::Inputs,
};

/// On every node. `text` is the script of the plugin; `empty` and `remove_chains` stand before it. It knows nothing of the file, which
/// may have changed since.
pub(super) fn task(inputs: &Inputs, plugin: &str, text: &str) -> Task {
    let mut task = Task::new(format!("remove_{plugin}"), format!("Remove {plugin}"));
    let text = format!("{EMPTY}{REMOVE_CHAINS}{text}");
    for (host, _) in inputs.nodes() {
        let remove = Command::new(format!("remove rules, links and files of {plugin}"), text.clone());
        task = task.on(&host.name, HostWork::new(vec![Box::new(remove)]));
    }
    task
}
