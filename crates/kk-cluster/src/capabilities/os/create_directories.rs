//! Create directories, so that the record lists them and a delete removes those that kk created.

use std::fmt::Write as _;

use kk_connector::quote;
use kk_engine::{HostWork, Task, actions::Command};

use crate::model::inputs::Inputs;

/// The directories that the capabilities name, on every node. Only a missing directory counts as a difference, because binaries
/// may change the modes later.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("create_directories", "Create directories");
    for (host, facts) in inputs.nodes() {
        let mut script = String::new();
        for path in &inputs.requirements.directories {
            if !facts.files.contains_key(path) {
                let _ = writeln!(script, "kk_dir {} 755 root:root", quote(path));
            }
        }
        if !script.is_empty() {
            let action = Command::new("make directories of Kubernetes", script);
            task = task.on(&host.name, HostWork::new(vec![Box::new(action)]));
        }
    }
    task
}
