//! Wait until all nodes are Ready and CoreDNS is available.

use std::time::Duration;

use kk_engine::{HostWork, Task, actions::Command};

use crate::{
    Target,
    modules::{KUBECTL, slots},
};

/// By a watch of the API, not by polling.
const SCRIPT: &str = "\
kubectl wait --for=condition=Ready nodes --all --timeout=300s >/dev/null || { kubectl get nodes >&2; kubectl get pods -A -o wide >&2; exit 1; }
kubectl -n kube-system rollout status deployment/coredns --timeout=300s >/dev/null || { kubectl -n kube-system describe pods -l k8s-app=kube-dns >&2; exit 1; }
";

/// On the first control plane, unless the probe saw it.
pub(super) fn task(target: &Target) -> Task {
    let ready = super::is_ready(target);
    let wait =
        Command::new("wait until nodes are Ready and CoreDNS is available", format!("{KUBECTL}{SCRIPT}"))
            .when(move |_| !ready)
            .hint(
                "",
                "look at the pods that are not ready: \"kubectl get pods -A\", \"kubectl describe pod …\"",
            );
    let mut work = HostWork::new(vec![Box::new(wait)])
        .needs(slots::initialised().key())
        .needs(slots::node_tools(&target.spec.first_control_plane().name).key());
    for host in target.spec.nodes() {
        work = work.awaits(slots::joined(&host.name).key());
    }
    Task::new("wait_until_ready", "Wait until nodes are Ready")
        .timeout(Duration::from_mins(11))
        .on(&target.spec.first_control_plane().name, work)
}
