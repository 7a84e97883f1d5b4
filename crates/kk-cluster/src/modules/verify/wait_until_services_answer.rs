//! Wait until a Service answers: from this host through kube-proxy and the pod network to a pod of CoreDNS.

use std::time::Duration;

use kk_engine::{HostWork, Task, actions::WaitUntil};

use crate::Target;

/// CoreDNS serves its figures over HTTP on its Service's address, so no client for DNS is needed on the host.
pub(super) fn task(target: &Target) -> Task {
    let task = Task::new("wait_until_services_answer", "Wait until a Service answers")
        .timeout(Duration::from_secs(150));
    let address = target.spec.network.dns_service_address();
    let host = target.spec.first_control_plane();
    if target.spec.kubernetes.disable_kube_proxy {
        return task;
    }
    let ready = super::is_ready(target);
    let wait = WaitUntil::new(
        "the DNS Service answers",
        format!("if command -v curl >/dev/null; then curl -sS -m 2 -o /dev/null http://{address}:9153/metrics; else wget -q -T 2 -O /dev/null http://{address}:9153/metrics; fi"),
    )
    .done_by(move |_| ready)
    .hint("", "pods of different hosts must reach each other: look at firewalls (flannel vxlan: UDP 8472 between the hosts)");
    task.on(&host.name, HostWork::new(vec![Box::new(wait)]))
}
