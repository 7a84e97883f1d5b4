//! Preflight checks of kubeadm that must not stop a run.

use kk_config::Host;

use crate::{base::host_layout::NOTES, model::cluster::Cluster};

/// Checks that are always ignored, because kk handles these conditions itself: for example, images are already on the host, and
/// kk adapts to cgroup v1.
const IGNORED_CHECKS: &str = "SystemVerification,ImagePull,Swap,NumCPU,Mem,HTTPProxyCIDR";

/// All checks to ignore: the constant ones, and those about leftovers of a killed run, if the host has any, or of an earlier
/// attempt to join.
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
    // A join that is retried in this run finds the files of its first attempt.
    checks.push_str(",FileAvailable--etc-kubernetes-kubelet.conf,FileAvailable--etc-kubernetes-bootstrap-kubelet.conf,FileAvailable--etc-kubernetes-pki-ca.crt,DirAvailable--etc-kubernetes-manifests");
    if any || facts.units.get("kubelet.service").is_some_and(|unit| unit.active) {
        checks.push_str(",Port-6443,Port-10250,Port-10257,Port-10259");
    }
    checks
}
