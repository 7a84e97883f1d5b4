//! Remove the traces of a plugin on nodes: kernel objects, and files that its binaries wrote.

use kk_engine::{HostWork, Task, actions::Command};

use crate::{
    base::shell::{EMPTY, REMOVE_CHAINS},
    model::inputs::Inputs,
};

/// Runs on every node. `text` is the script of the plugin, preceded by the functions `empty` and `remove_chains`. The script does
/// not depend on the file, which may have changed since the plugin was installed.
pub(super) fn task(inputs: &Inputs, plugin: &str, text: &str) -> Task {
    let mut task = Task::new(format!("remove_{plugin}"), format!("Remove {plugin}"));
    let text = format!("{EMPTY}{REMOVE_CHAINS}{text}");
    for (host, _) in inputs.nodes() {
        let remove = Command::new(format!("remove rules, links and files of {plugin}"), text.clone());
        task = task.on(&host.name, HostWork::new(vec![Box::new(remove)]));
    }
    task
}
