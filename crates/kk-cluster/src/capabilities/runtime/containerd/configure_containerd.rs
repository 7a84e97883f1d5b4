//! Configure containerd.

use kk_engine::{Action, HostWork, Task, actions::File};
use serde_json::json;

use super::{files::files, is_active};
use crate::{base::error::BuildError, model::inputs::Inputs};

/// Writes the configuration, the unit, and the address of the runtime for crictl. A running containerd is changed in its turn.
pub(super) fn task(inputs: &Inputs) -> Result<Task, BuildError> {
    let mut task = Task::new("configure_containerd", "Configure containerd");
    for (host, facts) in inputs.nodes() {
        let mut actions: Vec<Box<dyn Action>> = Vec::new();
        if !is_active(facts) {
            actions.extend(files(inputs, facts)?);
        }
        actions.push(Box::new(File::text(
            "/etc/crictl.yaml",
            inputs.templates.render("containerd/crictl.yaml", &json!({}))?,
        )));
        task = task.on(&host.name, HostWork::new(actions));
    }
    Ok(task)
}
