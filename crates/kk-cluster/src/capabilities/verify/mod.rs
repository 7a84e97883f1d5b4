//! Verification: "complete" means that the cluster works.

mod ask_pods;
mod wait_until_ready;

use kk_engine::Task;

use crate::{
    capabilities::nodes::record_joins, capability::Capability, inputs::Inputs, requirements::Workload,
};

/// Nodes Ready, the workloads of all capabilities available, and every node reaches the pods and the Service of CoreDNS.
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
        vec![wait_until_ready::task(inputs), ask_pods::task(inputs), record_joins::task(inputs)]
    }
}

/// What the API says, at the time of the probe.
fn is_ready(inputs: &Inputs) -> bool {
    let state = &inputs.state;
    let available = |Workload { namespace, path, .. }: &Workload| {
        let name = path.split_once('/').map_or(*path, |(_, name)| name);
        state.is_available(&format!("{namespace}/{name}"))
    };
    inputs.nodes().iter().all(|(host, facts)| inputs.is_ready(host) && !record_joins::is_marked(facts))
        && inputs.requirements.workloads().iter().all(available)
}
