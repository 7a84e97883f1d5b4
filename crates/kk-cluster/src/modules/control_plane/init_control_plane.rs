//! Initialise the first control plane.

use std::time::Duration;

use kk_engine::{HostWork, Task, actions::Command};

use super::ignored_checks;
use crate::{
    Target, kubeadm,
    modules::{DROP_COPIES, slots},
};

/// `kubeadm init` without its add-ons: they come when the nodes are there. It waits for its own images and programs only.
///
/// After a failure nothing is reset: kubeadm's phases take up what is there, and etcd's data must not be touched.
pub(super) fn task(target: &Target) -> Task {
    let host = target.spec.first_control_plane();
    let script = format!(
        "mkdir -p -m 755 /etc/kubernetes\nkubeadm init --config init.yaml --skip-phases=addon --ignore-preflight-errors={}\n{DROP_COPIES}",
        ignored_checks(target, host)
    );
    let init = Command::new("initialise the control plane (kubeadm init)", script)
        .file("init.yaml", kubeadm::init_documents(target, host, &target.token).into_bytes())
        .hint("port", "another program listens there: stop it and run again")
        .hint("ErrImageNeverPull", "an image is missing on the host: run again")
        .hint(
            "",
            "see \"journalctl -u kubelet\" and \"crictl ps -a\" on the host; run again when it is mended",
        );
    let work =
        if target.is_initialised() { HostWork::default() } else { HostWork::new(vec![Box::new(init)]) };
    let mut work = work
        .needs(slots::runtime(&host.name).key())
        .needs(slots::kube_programs(&host.name).key())
        .provides(slots::initialised().key())
        .provides(slots::joined(&host.name).key());
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
