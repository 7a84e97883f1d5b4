//! Configure registries, that is, how containerd reaches them.

use kk_engine::{
    Action, HostWork, Task,
    actions::{Directory, File},
};

use super::registries::registries;
use crate::{base::error::BuildError, model::inputs::Inputs};

/// containerd reads these files for each pull, so no restart is needed.
pub(super) fn task(inputs: &Inputs) -> Result<Task, BuildError> {
    let mut task = Task::new("configure_registries", "Configure registries");
    let registries = registries(inputs.spec)?;
    for (host, _) in inputs.nodes() {
        let mut actions: Vec<Box<dyn Action>> = vec![Box::new(Directory::new("/etc/containerd/certs.d"))];
        for registry in &registries {
            let directory = format!("/etc/containerd/certs.d/{}", registry.host);
            for (name, text, secret) in &registry.files {
                let path = format!("{directory}/{name}");
                actions.push(if *secret {
                    Box::new(File::text(path, text.clone()).mode(0o600))
                } else {
                    Box::new(File::text(path, text.clone()))
                });
            }
            let text = inputs.templates.render("containerd/hosts.toml", &registry.values)?;
            // The file may contain credentials.
            actions.push(Box::new(File::text(format!("{directory}/hosts.toml"), text).mode(0o600)));
        }
        task = task.on(&host.name, HostWork::new(actions));
    }
    Ok(task)
}
