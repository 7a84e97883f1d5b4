//! Initialise the control plane.

use std::time::Duration;

use kk_config::Host;
use kk_connector::quote;
use kk_engine::{
    Action, HostWork, Task,
    actions::{Command, Unit, WaitUntil},
};

use super::{
    certificate::{RENEWED, renew},
    manifests, note,
};
use crate::{
    host_layout::{DROP_COPIES, KUBECTL},
    inputs::Inputs,
    kubeadm, slots,
};

/// `kubeadm init` without its add-ons: they come when the nodes are there. It waits for its own images and programs only.
///
/// After a failure nothing is reset: kubeadm's phases take up what is there, and etcd's data must not be touched. A
/// control plane that went through it once is never initialised again, also while its API is down.
pub(super) fn task(inputs: &Inputs) -> Task {
    let host = inputs.api_host;
    let is_down = inputs.is_initialised() && !inputs.state.answered;
    let actions: Vec<Box<dyn Action>> = if is_down {
        bring_back(inputs, host)
    } else if inputs.is_initialised() {
        Vec::new()
    } else {
        vec![Box::new(init(inputs, host))]
    };
    let mut work = HostWork::new(actions)
        .needs(slots::runtime_slot(&host.name))
        .needs(slots::kube_programs_slot(&host.name))
        .provides(slots::initialised_slot())
        .provides(slots::joined_slot(&host.name));
    if is_down {
        work = work.needs(slots::node_tools_slot(&host.name));
    }
    if !inputs.options.skip_pull_images {
        work = work.needs(slots::control_plane_images_slot(&host.name));
    }
    for (member, _) in inputs.etcd_hosts() {
        work = work.needs(slots::etcd_healthy_slot(&member.name));
    }
    Task::new("init_control_plane", "Initialise the control plane")
        .timeout(Duration::from_mins(10))
        .on(&host.name, work)
}

/// kubeadm keeps a certificate that is there, whatever names it has. So the API server's goes first: the file may have
/// changed since a run that was killed.
fn init(inputs: &Inputs, host: &Host) -> Command {
    let script = format!(
        "mkdir -p -m 755 /etc/kubernetes\nrm -f /etc/kubernetes/pki/apiserver.crt /etc/kubernetes/pki/apiserver.key\n\
         kk_do kubeadm init --config init.yaml --skip-phases=addon --ignore-preflight-errors={}\n{DROP_COPIES}",
        quote(&kubeadm::ignored_checks(inputs, host))
    );
    Command::new("initialise the control plane (kubeadm init)", script)
        .file("init.yaml", kubeadm::init_documents(inputs, host, &inputs.token).into_bytes())
        .files(kubeadm::probe_patches())
        .hint("port", "another program listens there: stop it and run again")
        .hint("ErrImageNeverPull", "an image is missing on the host: run again")
        .hint(
            "",
            "see \"journalctl -u kubelet\" and \"crictl ps -a\" on the host; run again when it is repaired",
        )
}

/// A control plane whose API is down: its kubelet starts, and settings that the last run could not start it with are
/// replaced by those of the file. Nothing is uploaded before it answers.
fn bring_back(inputs: &Inputs, host: &Host) -> Vec<Box<dyn Action>> {
    let mut actions: Vec<Box<dyn Action>> = vec![Box::new(Unit::started("kubelet.service"))];
    let write = "kubeadm init phase control-plane all --config config.yaml\n";
    let script = if note::is_changed(inputs, host) {
        Some(format!("{}{write}{RENEWED}", renew(&["apiserver"])))
    } else {
        manifests::differ(inputs, host).then(|| write.to_owned())
    };
    if let Some(script) = script {
        actions.push(Box::new(
            Command::new("write the manifests of the control plane", script)
                .files(kubeadm::manifest_files(inputs, host)),
        ));
    }
    let answers = format!("{KUBECTL}kubectl --request-timeout 5s get --raw /readyz >/dev/null");
    actions.push(Box::new(WaitUntil::new("the API answers", answers).within(Duration::from_mins(4)).hint(
        "",
        "the control plane was initialised before, so it is not initialised again: see \"crictl ps -a\" and \"journalctl -u kubelet\" on the host",
    )));
    actions.push(Box::new(
        Command::new(
            "make sure that administrators have their rights",
            format!("{KUBECTL}{}", include_str!("restore_rights.sh")),
        )
        .file("config.yaml", kubeadm::phase_documents(inputs, host).into_bytes()),
    ));
    actions
}
