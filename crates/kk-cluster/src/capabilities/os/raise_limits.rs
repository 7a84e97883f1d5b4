//! Raise the limits of login sessions.

use kk_engine::{HostWork, Task, actions::File};
use serde_json::json;

use crate::{base::error::BuildError, model::inputs::Inputs};

/// A drop-in of `limits.d`. Services have their limits in their units.
pub(super) fn task(inputs: &Inputs) -> Result<Task, BuildError> {
    let text = inputs.templates.render("os/limits.conf", &json!({}))?;
    let mut task = Task::new("raise_limits", "Raise limits");
    for (host, _) in inputs.nodes() {
        let action = File::text("/etc/security/limits.d/99-kubekey.conf", text.clone());
        task = task.on(&host.name, HostWork::new(vec![Box::new(action)]));
    }
    Ok(task)
}
