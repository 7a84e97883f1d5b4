//! Waiting until it is true: "complete" means that the cluster works.

mod wait_until_ready;
mod wait_until_services_answer;

use kk_config::NetworkPlugin;
use kk_engine::Module;

use crate::Target;

/// Nodes Ready, CoreDNS available, a Service answers. Without a network plugin none of it can come true.
pub(crate) fn module(target: &Target) -> Module {
    if target.spec.network.plugin == NetworkPlugin::None {
        return Module::skipped(
            "verify",
            "without a network plugin nodes do not become ready; install yours now",
        );
    }
    Module::new("verify", vec![wait_until_ready::task(target), wait_until_services_answer::task(target)])
}

/// What the API says, at the time of the probe.
fn is_ready(target: &Target) -> bool {
    let state = &target.state;
    target.spec.nodes().iter().all(|host| state.nodes.get(&host.name).is_some_and(|node| node.ready))
        && state.is_available("kube-system/coredns")
}
