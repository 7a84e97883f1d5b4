//! The control plane: init on the first, join on the others, and its settings from then on.

mod init_control_plane;
mod join_control_plane;
mod open_for_joins;
mod publish_settings;
mod share_certificates;

use kk_config::Host;
use kk_engine::Module;

use crate::{Target, modules::NOTES};

/// What a failing preflight check may not stop: images are there before, cgroup v1 is adapted to, and a run that was
/// killed has left files and listening programs of its own.
pub(crate) const IGNORED_CHECKS: &str = "SystemVerification,ImagePull,Swap,NumCPU,Mem,HTTPProxyCIDR";

/// Makes the API server's certificate anew, with the names that the file asks for: kubeadm keeps one that is there.
const RENEW_CERTIFICATE: &str = "rm -f /etc/kubernetes/pki/apiserver.crt /etc/kubernetes/pki/apiserver.key
kubeadm init phase certs apiserver --config config.yaml
";

/// Checks that only a run after a killed one fails. They are ignored on hosts where something is left, no others.
pub(crate) fn ignored_checks(target: &Target, host: &Host) -> String {
    let facts = target.facts(host);
    let mut checks = IGNORED_CHECKS.to_owned();
    let left =
        facts.files.keys().filter(|path| path.starts_with("/etc/kubernetes/") && !path.starts_with(NOTES));
    let mut any = false;
    for path in left {
        any = true;
        checks.push_str(",FileAvailable-");
        checks.push_str(&path.replace('/', "-"));
    }
    // A join that is tried again in this run finds what its first attempt left.
    checks.push_str(",FileAvailable--etc-kubernetes-kubelet.conf,FileAvailable--etc-kubernetes-bootstrap-kubelet.conf,FileAvailable--etc-kubernetes-pki-ca.crt,DirAvailable--etc-kubernetes-manifests");
    if any || facts.units.get("kubelet.service").is_some_and(|unit| unit.active) {
        checks.push_str(",Port-6443,Port-10250,Port-10257,Port-10259");
    }
    checks
}

/// Brings up the control plane.
pub(crate) fn module(target: &Target) -> Module {
    Module::new(
        "control-plane",
        vec![
            init_control_plane::task(target),
            open_for_joins::task(target),
            share_certificates::task(target),
            join_control_plane::task(target),
            publish_settings::task(target),
        ],
    )
}
