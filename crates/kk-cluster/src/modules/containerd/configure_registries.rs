//! Tell containerd how to reach registries.

use kk_engine::{
    Action, HostWork, Task,
    actions::{Directory, File},
};

use super::registries::registries;
use crate::{BuildError, Target};

/// containerd reads these files at each pull: no restart is needed.
pub(super) fn task(target: &Target) -> Result<Task, BuildError> {
    let mut task = Task::new("configure_registries", "Configure registries");
    let registries = registries(target.spec)?;
    for host in target.spec.nodes() {
        let mut actions: Vec<Box<dyn Action>> = vec![Box::new(Directory::new("/etc/containerd/certs.d"))];
        for registry in &registries {
            let folder = format!("/etc/containerd/certs.d/{}", registry.host);
            for (name, text, secret) in &registry.files {
                let path = format!("{folder}/{name}");
                actions.push(if *secret {
                    Box::new(File::text(path, text.clone()).mode(0o600))
                } else {
                    Box::new(File::text(path, text.clone()))
                });
            }
            let text = target.templates.render("containerd/hosts.toml", &registry.values)?;
            // It may hold credentials.
            actions.push(Box::new(File::text(format!("{folder}/hosts.toml"), text).mode(0o600)));
        }
        task = task.on(&host.name, HostWork::new(actions));
    }
    Ok(task)
}
