//! Configure containerd.

use kk_engine::{HostWork, Task, actions::File};
use serde_json::json;

use super::files::files;
use crate::{BuildError, inputs::Inputs};

/// Configuration format, unit, and where crictl finds the runtime.
pub(super) fn task(inputs: &Inputs) -> Result<Task, BuildError> {
    let mut task = Task::new("configure_containerd", "Configure containerd");
    for (host, facts) in inputs.nodes() {
        let mut actions = files(inputs, facts)?;
        actions.push(Box::new(File::text(
            "/etc/crictl.yaml",
            inputs.templates.render("containerd/crictl.yaml", &json!({}))?,
        )));
        task = task.on(&host.name, HostWork::new(actions));
    }
    Ok(task)
}
