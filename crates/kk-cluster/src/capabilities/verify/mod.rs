//! Verification that a cluster works before kk reports it as complete.

mod ask_pods;
mod new_service;
mod remove_probe_service;
mod wait_until_ready;

use kk_config::Host;
use kk_engine::Task;

use crate::{
    base::{
        findings::Findings,
        requirements::{Workload, never_ready, probe_service},
    },
    capabilities::{control_plane::parts, kube_proxy::services, network, nodes::record_joins},
    model::{
        capability::{Capability, Stage},
        cluster::Cluster,
        inputs::Inputs,
    },
};

/// Nodes are Ready, the workloads of all capabilities are available, and every node reaches the pods and the Service of CoreDNS.
/// After a restart of an API server, every node also has to reach a new Service.
pub(crate) struct Verify;

impl Capability for Verify {
    fn name(&self) -> &'static str {
        "verify"
    }

    fn stage(&self) -> Stage {
        Stage::Verification
    }

    fn skipped(&self, cluster: &Cluster) -> Option<&'static str> {
        never_ready(&network::capability(cluster.spec).ready(cluster))
    }

    /// If nothing can be repaired on the node itself, the tasks report what does not answer.
    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        for (host, facts) in inputs.nodes() {
            if let Some(why) = is_silent(inputs, host) {
                found.warning(
                    host,
                    format!("the host did not report whether its pods reach other pods: {why}"),
                    "the run verifies it; if the problem remains, check the load of the host",
                );
            }
            if let Some(why) = services::dns_broken(inputs, host, facts) {
                found.warning(
                    host,
                    format!("the DNS Service does not answer on this node: {why}"),
                    "if the problem remains, check the pods of CoreDNS and firewalls between the hosts",
                );
            }
        }
    }

    /// Skipped only if the probe saw that all of it holds, and nothing has changed since.
    fn verify(&self, inputs: &Inputs, changes: bool) -> Vec<Task> {
        if !changes && is_ready(inputs) {
            return Vec::new();
        }
        let mut tasks = vec![wait_until_ready::task(inputs), ask_pods::task(inputs)];
        if inputs.is_initialised() {
            tasks.push(remove_probe_service::task(inputs));
        }
        tasks.push(record_joins::task(inputs));
        tasks
    }
}

/// Whether pods of a node reach Services and pods of other nodes, as the node itself reports.
pub(crate) fn is_connected(inputs: &Inputs, host: &Host) -> bool {
    inputs
        .facts(host)
        .is_some_and(|facts| services::work(inputs, facts) && network::works(inputs, host, facts))
}

/// Why a node that is Ready has not reported whether its pods reach them.
pub(crate) fn is_silent(inputs: &Inputs, host: &Host) -> Option<String> {
    let facts = inputs.facts(host).filter(|_| inputs.is_ready(host))?;
    let services = facts.answer(&services::SERVICES).unanswered().map(ToString::to_string);
    services.or_else(|| network::silence(inputs, facts))
}

/// Evaluates what the API and the nodes reported to the probe.
fn is_ready(inputs: &Inputs) -> bool {
    let state = &inputs.state;
    let available = |Workload { namespace, path, .. }: &Workload| {
        let name = path.split_once('/').map_or(*path, |(_, name)| name);
        state.is_available(&format!("{namespace}/{name}"))
    };
    !state.objects.contains_key(&probe_service().key())
        && inputs.nodes().iter().all(|(host, facts)| {
            inputs.is_ready(host) && is_connected(inputs, host) && !record_joins::is_marked(facts)
        })
        && inputs
            .control_planes()
            .iter()
            .all(|(host, facts)| parts::not_ready(inputs, host, facts).is_empty())
        && inputs.requirements.workloads().iter().all(available)
}
