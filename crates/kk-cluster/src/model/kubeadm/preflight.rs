//! The preflight checks of kubeadm that may not stop a run.

use kk_config::Host;

use crate::{base::host_layout::NOTES, model::cluster::Cluster};

/// What a failing preflight check may not stop: images are there before, cgroup v1 is adapted to, and a run that was
/// killed has left files and listening programs of its own.
const IGNORED_CHECKS: &str = "SystemVerification,ImagePull,Swap,NumCPU,Mem,HTTPProxyCIDR";

/// Checks that only a run after a killed one fails. They are ignored on hosts where something is left, no others.
pub(crate) fn ignored_checks(cluster: &Cluster, host: &Host) -> String {
    let mut checks = IGNORED_CHECKS.to_owned();
    let Some(facts) = cluster.facts(host) else { return checks };
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
