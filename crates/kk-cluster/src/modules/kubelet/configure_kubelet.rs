//! Configure the kubelet: its unit and its flags.

use kk_config::Host;
use kk_engine::{
    Action, HostWork, Task,
    actions::{File, Unit},
};
use serde_json::json;

use crate::{BuildError, Target};

/// Enabled, not started: kubeadm starts it when its credentials are there.
pub(super) fn task(target: &Target) -> Result<Task, BuildError> {
    let mut task = Task::new("configure_kubelet", "Configure kubelet");
    for host in target.spec.nodes() {
        let mut actions = files(target, host)?;
        actions.push(Box::new(Unit::enabled("kubelet.service")));
        task = task.on(&host.name, HostWork::new(actions));
    }
    Ok(task)
}

/// The kubelet's unit.
pub(super) fn files(target: &Target, host: &Host) -> Result<Vec<Box<dyn Action>>, BuildError> {
    let flags = json!({"args": flags(host, target)});
    Ok(vec![
        Box::new(File::text(
            "/etc/systemd/system/kubelet.service",
            target.templates.render("kubelet/kubelet.service", &json!({}))?,
        )),
        Box::new(File::text(
            "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf",
            target.templates.render("kubelet/10-kubeadm.conf", &flags)?,
        )),
    ])
}

/// The flags of one node, for a systemd `Environment=` line in double quotes.
fn flags(host: &Host, target: &Target) -> String {
    let mut address = host.internal_address.to_string();
    if let Some(second) = host.internal_address_v6 {
        address = format!("{address},{second}");
    }
    let mut flags = vec![format!("--node-ip={address}"), format!("--hostname-override={}", host.name)];
    flags.extend(target.spec.kubernetes.kubelet_args.iter().map(|(name, value)| format!("--{name}={value}")));
    // systemd.exec(5): in a quoted assignment these characters need a backslash, and % doubles.
    flags.join(" ").replace('\\', r"\\").replace('"', "\\\"").replace('%', "%%")
}
