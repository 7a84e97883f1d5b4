//! Wait until a Service answers: from this host through kube-proxy and the pod network to a pod of CoreDNS.

use std::time::Duration;

use kk_engine::{HostWork, Task, actions::WaitUntil};

use crate::{
    inputs::Inputs,
    requirements::{Port, Protocol},
};

/// CoreDNS serves its metrics over HTTP on its Service's address, so no client for DNS is needed on the host.
pub(super) fn task(inputs: &Inputs) -> Task {
    let task = Task::new("wait_until_services_answer", "Wait until a Service answers")
        .timeout(Duration::from_secs(150));
    let address = inputs.spec.network.dns_service_address();
    let host = inputs.api_host;
    if inputs.spec.kubernetes.disable_kube_proxy {
        return task;
    }
    let wait = WaitUntil::new(
        "the DNS Service answers",
        format!("if command -v curl >/dev/null; then curl -sS -m 2 -o /dev/null http://{address}:9153/metrics; else wget -q -T 2 -O /dev/null http://{address}:9153/metrics; fi"),
    )
    .hint("", format!("pods of different hosts must reach each other: look at firewalls{}", udp_ports(inputs)));
    task.on(&host.name, HostWork::new(vec![Box::new(wait)]))
}

/// Ports between the nodes on which the network of pods travels.
fn udp_ports(inputs: &Inputs) -> String {
    let ports = inputs.requirements.ports(inputs.api_host).iter();
    let udp = ports.filter(|port| port.protocol == Protocol::Udp);
    let text = |port: &Port| format!(" ({}: UDP {} between the hosts)", port.program, port.number);
    udp.map(text).collect::<Vec<_>>().concat()
}
