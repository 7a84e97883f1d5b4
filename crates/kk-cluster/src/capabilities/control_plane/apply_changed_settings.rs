//! Apply changed settings: published to the cluster, and to the control planes that run already.

use kk_config::{ControlPlaneEndpoint, Host};
use kk_engine::{
    Action, HostWork, Task,
    actions::{Command, File},
};

use super::{certificate::RENEW_CERTIFICATE, note::note};
use crate::{
    host_layout::{KUBECTL, NOTES},
    inputs::Inputs,
    kubeadm,
    shell::script,
    slots,
};

/// The notes on each control plane of what was last applied there. A cluster without notes was made just now by the
/// task before, with these very settings.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("apply_changed_settings", "Apply changed settings").concurrency(1);
    for (host, facts) in inputs.control_planes() {
        let first = host.name == inputs.api_host.name;
        let cluster = note(inputs);
        let kubelet = kubeadm::kubelet_document(inputs);
        let mut actions: Vec<Box<dyn Action>> = Vec::new();
        let runs = if first { inputs.is_initialised() } else { inputs.has_joined(host) };
        let config = kubeadm::phase_documents(inputs, host);
        if runs && cluster.check(facts).is_needed() {
            actions.push(Box::new(
                Command::new("apply changed settings of the control plane", apply(host, first))
                    .file("config.yaml", config.clone().into_bytes()),
            ));
        }
        if first {
            if runs && inputs.state.answered && !inputs.state.has_configuration {
                actions.push(Box::new(
                    Command::new(
                        "publish the settings of the cluster",
                        "kubeadm init phase upload-config kubeadm --config config.yaml\n",
                    )
                    .file("config.yaml", config.clone().into_bytes()),
                ));
            }
            let note = File::text(format!("{NOTES}/kubelet-cluster.yaml"), kubelet);
            if runs && note.check(facts).is_needed() {
                actions.push(Box::new(
                    Command::new(
                        "publish the kubelet's settings",
                        "kubeadm init phase upload-config kubelet --config config.yaml\n",
                    )
                    .file("config.yaml", config.into_bytes()),
                ));
            }
            actions.push(Box::new(note));
        }
        actions.push(Box::new(cluster));
        let mut work = HostWork::new(actions);
        if first {
            work = work.provides(slots::settings_published_slot());
        }
        task = task.on(&host.name, work);
    }
    task
}

/// Publishes first, while the API answers; then writes certificate and manifests again, and waits for the API server that
/// starts from them. With `concurrency(1)` the other control planes answer meanwhile.
fn apply(host: &Host, first: bool) -> String {
    let server = format!("https://{}:{}", host.internal_address, ControlPlaneEndpoint::API_SERVER_PORT);
    let variables = [("publish", if first { "yes" } else { "" }), ("server", server.as_str())];
    let [publish, start] = [include_str!("publish_settings.sh"), include_str!("restart_control_plane.sh")];
    format!("{KUBECTL}{}{RENEW_CERTIFICATE}{start}", script(&variables, publish))
}
