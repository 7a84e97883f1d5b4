//! Initialise the first control plane.

use std::time::Duration;

use kk_config::Host;
use kk_connector::quote;
use kk_engine::{
    Action, HostWork, Task,
    actions::{Command, Unit, WaitUntil},
};

use super::{RENEW_CERTIFICATE, ignored_checks, publish_settings};
use crate::{
    Target, kubeadm,
    modules::{DROP_COPIES, KUBECTL, slots},
};

/// `kubeadm init` without its add-ons: they come when the nodes are there. It waits for its own images and programs only.
///
/// After a failure nothing is reset: kubeadm's phases take up what is there, and etcd's data must not be touched. A
/// control plane that went through it once is never initialised again, also while its API is down.
pub(super) fn task(target: &Target) -> Task {
    let host = target.spec.first_control_plane();
    let is_down = target.is_initialised() && !target.state.answered;
    let actions: Vec<Box<dyn Action>> = if is_down {
        bring_back(target, host)
    } else if target.is_initialised() {
        Vec::new()
    } else {
        vec![Box::new(init(target, host))]
    };
    let mut work = HostWork::new(actions)
        .needs(slots::runtime(&host.name).key())
        .needs(slots::kube_programs(&host.name).key())
        .provides(slots::initialised().key())
        .provides(slots::joined(&host.name).key());
    if is_down {
        work = work.needs(slots::node_tools(&host.name).key());
    }
    if !target.options.skip_pull_images {
        work = work.needs(slots::control_plane_images(&host.name).key());
    }
    for member in target.spec.etcd_hosts() {
        work = work.needs(slots::etcd_healthy(&member.name).key());
    }
    Task::new("init_control_plane", "Initialise the control plane")
        .timeout(Duration::from_mins(10))
        .on(&host.name, work)
}

/// kubeadm keeps a certificate that is there, whatever names it has. So the API server's goes first: the file may have
/// changed since a run that was killed.
fn init(target: &Target, host: &Host) -> Command {
    let script = format!(
        "mkdir -p -m 755 /etc/kubernetes\nrm -f /etc/kubernetes/pki/apiserver.crt /etc/kubernetes/pki/apiserver.key\n\
         kk_do kubeadm init --config init.yaml --skip-phases=addon --ignore-preflight-errors={}\n{DROP_COPIES}",
        quote(&ignored_checks(target, host))
    );
    Command::new("initialise the control plane (kubeadm init)", script)
        .file("init.yaml", kubeadm::init_documents(target, host, &target.token).into_bytes())
        .hint("port", "another program listens there: stop it and run again")
        .hint("ErrImageNeverPull", "an image is missing on the host: run again")
        .hint(
            "",
            "see \"journalctl -u kubelet\" and \"crictl ps -a\" on the host; run again when it is mended",
        )
}

/// A control plane whose API is down: its kubelet starts, and settings that the last run could not start it with are
/// replaced by those of the file. Nothing is uploaded before it answers.
fn bring_back(target: &Target, host: &Host) -> Vec<Box<dyn Action>> {
    let mut actions: Vec<Box<dyn Action>> = vec![Box::new(Unit::started("kubelet.service"))];
    if publish_settings::is_changed(target, host) {
        actions.push(Box::new(
            Command::new(
                "write the manifests of the control plane",
                format!("{RENEW_CERTIFICATE}kubeadm init phase control-plane all --config config.yaml\n"),
            )
            .file("config.yaml", kubeadm::phase_documents(target, host).into_bytes()),
        ));
    }
    let answers = format!("{KUBECTL}kubectl --request-timeout 5s get --raw /readyz >/dev/null");
    actions.push(Box::new(WaitUntil::new("the API answers", answers).within(Duration::from_mins(4)).hint(
        "",
        "the control plane was initialised before, so it is not made anew: see \"crictl ps -a\" and \"journalctl -u kubelet\" on the host",
    )));
    actions
}
