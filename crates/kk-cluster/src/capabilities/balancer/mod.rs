//! Load balancers that kk installs for the API, in one directory each. Other directories use it only through this module.
//!
//! A load balancer works only on nodes that have joined. Until then the name of the API resolves to a control plane. Each kind
//! starts its balancer; then the name is switched, and pods that know the previous address restart. A balancer that the file no
//! longer names is removed last, so a change of the kind is a move of the API.

pub(crate) mod haproxy;
mod in_turns;
pub(crate) mod kube_vip;
mod none;
mod switch_name;

use std::time::Duration;

use kk_config::{Balancer, Host, Spec};
use kk_engine::{Facts, ProbeSpec, Task, actions::WaitUntil};

use crate::{
    base::{host_layout::KUBELET_CONF, shell::script},
    capabilities::nodes::{self, finish_moves},
    model::{capability::Capability, inputs::Inputs},
};

/// The load balancer that the file specifies.
pub(crate) fn capability(spec: &Spec) -> &'static dyn Capability {
    match spec.control_plane_endpoint.balancer {
        Balancer::None => &none::NoBalancer,
        Balancer::Haproxy => &haproxy::Haproxy,
        Balancer::KubeVip(_) => &kube_vip::KubeVip,
    }
}

/// The tasks of every kind, around the tasks that start the balancer.
fn tasks(inputs: &Inputs, start: Vec<Task>) -> Vec<Task> {
    let mut tasks = start;
    tasks.extend([
        switch_name::task(inputs),
        finish_moves::task(inputs),
        haproxy::remove_haproxy::task(inputs),
        kube_vip::remove_kube_vip::task(inputs),
    ]);
    tasks
}

/// Requests the facts that show which balancers are installed.
fn asks(host: &Host, probe: &mut ProbeSpec) {
    haproxy::asks(host, probe);
    kube_vip::asks(host, probe);
}

/// Waits until the API answers a node at the address that its name gets.
fn answers(inputs: &Inputs) -> WaitUntil {
    let endpoint = &inputs.spec.control_plane_endpoint;
    let server =
        endpoint.address.map_or_else(String::new, |address| format!("https://{address}:{}", endpoint.port));
    let variables = [("server", server.as_str()), ("domain", &endpoint.domain), ("kubeconfig", KUBELET_CONF)];
    let condition = script(
        &variables,
        "KUBECACHEDIR=\"$PWD/cache\" timeout -k 1 10 kubectl --kubeconfig \"$kubeconfig\" --request-timeout 5s \
         --server \"$server\" --tls-server-name \"$domain\" get --raw /readyz >/dev/null\n",
    );
    WaitUntil::new(format!("the API answers at {server}"), condition).within(Duration::from_mins(2))
}

/// Whether the API answered a node at that address.
fn has_answered(facts: &Facts) -> bool {
    nodes::refused(facts).is_none()
}
