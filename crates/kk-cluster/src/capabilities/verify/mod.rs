//! Verification: "complete" means that the cluster works.

mod ask_pods;
mod new_service;
mod remove_probe_service;
mod wait_until_ready;

pub(crate) use remove_probe_service::service as probe_service;

use kk_engine::Task;

use crate::{
    capabilities::{control_plane::parts, nodes::record_joins},
    capability::Capability,
    inputs::Inputs,
    requirements::Workload,
};

/// Nodes Ready, the workloads of all capabilities available, and every node reaches the pods and the Service of CoreDNS. After
/// a new start of an API server, also a Service that is new.
pub(crate) struct Verify;

impl Capability for Verify {
    fn name(&self) -> &'static str {
        "verify"
    }

    fn skipped(&self, inputs: &Inputs) -> Option<&'static str> {
        inputs.requirements.never_ready()
    }

    /// Left out only when the probe saw all of it and nothing has changed since.
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

/// What the API says, at the time of the probe.
fn is_ready(inputs: &Inputs) -> bool {
    let state = &inputs.state;
    let available = |Workload { namespace, path, .. }: &Workload| {
        let name = path.split_once('/').map_or(*path, |(_, name)| name);
        state.is_available(&format!("{namespace}/{name}"))
    };
    !state.objects.contains_key(&probe_service().key())
        && inputs.nodes().iter().all(|(host, facts)| inputs.is_ready(host) && !record_joins::is_marked(facts))
        && inputs
            .control_planes()
            .iter()
            .all(|(host, facts)| parts::not_ready(inputs, host, facts).is_empty())
        && inputs.requirements.workloads().iter().all(available)
}
