//! Verification: "complete" means that the cluster works.

mod wait_until_ready;
mod wait_until_services_answer;

use kk_engine::Task;

use crate::{capability::Capability, inputs::Inputs, requirements::Ready};

/// Nodes Ready, the workloads of all capabilities available, a Service answers.
pub(crate) struct Verify;

impl Capability for Verify {
    fn name(&self) -> &'static str {
        "verify"
    }

    fn skipped(&self, inputs: &Inputs) -> Option<&'static str> {
        inputs.requirements.ready.iter().find_map(|ready| match ready {
            Ready::Never(why) => Some(*why),
            Ready::Workload { .. } => None,
        })
    }

    /// Left out only when the probe saw all of it and nothing has changed since.
    fn verify(&self, inputs: &Inputs, changes: bool) -> Vec<Task> {
        if !changes && is_ready(inputs) {
            return Vec::new();
        }
        vec![wait_until_ready::task(inputs), wait_until_services_answer::task(inputs)]
    }
}

/// What the API says, at the time of the probe.
fn is_ready(inputs: &Inputs) -> bool {
    let state = &inputs.state;
    let available = |(namespace, workload): &(&str, &str)| {
        let name = workload.split_once('/').map_or(*workload, |(_, name)| name);
        state.is_available(&format!("{namespace}/{name}"))
    };
    inputs.nodes().iter().all(|(host, _)| state.nodes.get(&host.name).is_some_and(|node| node.ready))
        && inputs.requirements.workloads().iter().all(available)
}
