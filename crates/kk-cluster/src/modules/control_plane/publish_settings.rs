//! Publish changed settings to the cluster, and apply them to control planes that run already.

use kk_config::{ControlPlaneEndpoint, Host};
use kk_engine::{
    Action, HostWork, Task,
    actions::{Command, File},
};

use super::RENEW_CERTIFICATE;
use crate::{
    Target, kubeadm,
    modules::{KUBECTL, NOTES, slots},
};

/// The notes on each control plane of what was last applied there. A cluster without notes was made just now by the
/// task before, with these very settings.
pub(super) fn task(target: &Target) -> Task {
    let mut task = Task::new("publish_settings", "Publish settings").concurrency(1);
    for host in target.spec.control_planes() {
        let first = host.name == target.spec.first_control_plane().name;
        let facts = target.facts(host);
        let cluster = note(target);
        let kubelet = kubeadm::kubelet_document(target);
        let mut actions: Vec<Box<dyn Action>> = Vec::new();
        let runs = if first { target.is_initialised() } else { target.has_joined(host) };
        let config = kubeadm::phase_documents(target, host);
        if runs && cluster.check(facts).is_needed() {
            actions.push(Box::new(
                Command::new("apply changed settings of the control plane", apply(host, first))
                    .file("config.yaml", config.clone().into_bytes()),
            ));
        }
        if first {
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
            work = work.provides(slots::settings_published().key());
        }
        task = task.on(&host.name, work);
    }
    task
}

/// The note of the settings that were last applied.
fn note(target: &Target) -> File {
    File::text(format!("{NOTES}/cluster.yaml"), kubeadm::cluster_documents(target))
}

/// Whether the file asks for other settings than those last applied to this control plane.
pub(super) fn is_changed(target: &Target, host: &Host) -> bool {
    note(target).check(target.facts(host)).is_needed()
}

/// An init that was killed at its very end has left its last phase to us: without it, the kubelet's credentials are not
/// renewed.
const PUBLISH: &str = "kubeadm init phase upload-config kubeadm --config config.yaml
grep -q kubelet-client-current.pem /etc/kubernetes/kubelet.conf || kubeadm init phase kubelet-finalize all --config config.yaml
";

/// Publishes first, while the API answers; then writes certificate and manifests anew, and waits for the API server that
/// starts from them. With `concurrency(1)` the other control planes answer meanwhile.
fn apply(host: &Host, first: bool) -> String {
    let publish = if first { PUBLISH } else { "" };
    format!(
        "{KUBECTL}{publish}manifest=/etc/kubernetes/manifests/kube-apiserver.yaml
{RENEW_CERTIFICATE}was=$(sha256sum <$manifest)
before=$(crictl ps -q --name kube-apiserver)
kubeadm init phase control-plane all --config config.yaml
[ \"$was\" != \"$(sha256sum <$manifest)\" ] || exit 0
for _ in $(seq 240); do
    now=$(crictl ps -q --name kube-apiserver)
    if [ -n \"$now\" ] && [ \"$now\" != \"$before\" ] &&
        kubectl --server https://{address}:{port} get --raw /readyz >/dev/null 2>&1; then
        exit 0
    fi
    sleep 0.5
done
echo 'the API server does not come back with these settings' >&2
crictl logs --tail 15 \"$(crictl ps -a -q --name kube-apiserver | head -n 1)\" >&2
exit 1
",
        address = host.internal_address,
        port = ControlPlaneEndpoint::API_SERVER_PORT,
    )
}
