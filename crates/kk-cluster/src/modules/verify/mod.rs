//! Waiting until it is true: "complete" means that the cluster works.

mod wait_until_ready;
mod wait_until_services_answer;

use kk_config::NetworkPlugin;
use kk_engine::Module;

use crate::Target;

/// Nodes Ready, proxy and network up on each, CoreDNS available, a Service answers. Without a network plugin none of it can come true.
pub(crate) fn module(target: &Target) -> Module {
    if target.spec.network.plugin == NetworkPlugin::None {
        return Module::skipped(
            "verify",
            "without a network plugin nodes do not become ready; install yours now",
        );
    }
    Module::new("verify", vec![wait_until_ready::task(target), wait_until_services_answer::task(target)])
}

/// Workloads that must be ready on every node, or be there at all, by namespace. What becomes ready last is last, so that
/// the others are looked at meanwhile.
fn workloads(target: &Target) -> Vec<(&'static str, &'static str)> {
    let mut list = Vec::new();
    if !target.spec.kubernetes.disable_kube_proxy {
        list.push(("kube-system", "daemonset/kube-proxy"));
    }
    if matches!(target.spec.network.plugin, NetworkPlugin::Flannel(_)) {
        list.push(("kube-flannel", "daemonset/kube-flannel-ds"));
    }
    list.push(("kube-system", "deployment/coredns"));
    list
}

/// What the API says, at the time of the probe.
fn is_ready(target: &Target) -> bool {
    let state = &target.state;
    let available = |(namespace, workload): &(&str, &str)| {
        let name = workload.split_once('/').map_or(*workload, |(_, name)| name);
        state.is_available(&format!("{namespace}/{name}"))
    };
    target.spec.nodes().iter().all(|host| state.nodes.get(&host.name).is_some_and(|node| node.ready))
        && workloads(target).iter().all(available)
}
