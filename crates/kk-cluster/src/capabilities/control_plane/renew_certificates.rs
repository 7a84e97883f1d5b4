//! Renew certificates and kubeconfigs of running control planes.

use kk_config::Host;
use kk_engine::{
    Action, HostWork, Task,
    actions::{Command, Unit},
};

use super::{
    RESTART, before_restart,
    certificate::{RENEWED, renew},
    manifests::{self, WRITE},
    moves,
    renewal::{self, Renewed, kubeconfig},
};
use crate::{
    base::{api_server, error::BuildError, host_layout::KUBECTL, shell::script},
    model::{inputs::Inputs, kubeadm},
};

/// Renews one control plane at a time, until everything that reads the new files is ready with them. This happens before any
/// query of the API, because it answers no request with an expired certificate.
pub(super) fn task(inputs: &Inputs) -> Result<Task, BuildError> {
    let mut task = Task::new("renew_certificates", "Renew certificates").concurrency(1);
    for (host, facts) in inputs.control_planes() {
        let renewed = renewal::of(inputs, host, facts);
        if renewed.is_empty() {
            continue;
        }
        let differ = manifests::differ(inputs, host) || moves::why(inputs, host, facts).is_some();
        // The kubelet restarts the static pods; for that it needs no credentials.
        let mut actions: Vec<Box<dyn Action>> = vec![Box::new(Unit::started("kubelet.service"))];
        actions.extend(moves::follow(inputs, host, facts)?);
        actions.push(Box::new(
            Command::new(describe(&renewed), text(host, &renewed, differ))
                .files(kubeadm::manifest_files(inputs, host))
                .hint(
                    "does not become ready",
                    "see \"crictl ps -a\" and \"journalctl -u kubelet\" on the host",
                ),
        ));
        task = task.on(&host.name, before_restart(inputs, host, HostWork::new(actions)));
    }
    Ok(task)
}

fn describe(renewed: &[Renewed]) -> String {
    format!("renew {}", renewed.iter().map(|renewed| renewed.name).collect::<Vec<_>>().join(", "))
}

/// `differ`: the manifests have changed, so the restarted pods need new manifests from kubeadm.
fn text(host: &Host, renewed: &[Renewed], differ: bool) -> String {
    let names: Vec<&str> = renewed.iter().map(|renewed| renewed.name).collect();
    let server = api_server::url(host);
    let manifests = if differ { WRITE } else { "" };
    let again = readers(&names);
    let variables =
        [("server", server.as_str()), ("node", &host.name), ("again", &again), ("manifests", manifests)];
    format!("{KUBECTL}{}{}{RENEWED}", renew(&names), script(&variables, RESTART))
}

/// The static pods that read these files when they start.
fn readers(names: &[&str]) -> String {
    let reads = |part: &str, name: &str| match part {
        "kube-apiserver" => kubeconfig(name).is_none(),
        part => part.strip_prefix("kube-") == kubeconfig(name),
    };
    let parts = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];
    let again = parts.into_iter().filter(|part| names.iter().any(|name| reads(part, name)));
    again.collect::<Vec<_>>().join(" ")
}
