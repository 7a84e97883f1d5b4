//! Verification: "complete" means that the cluster works.

mod ask_pods;
mod wait_until_ready;

use kk_engine::Task;

use crate::{
    capability::Capability,
    inputs::Inputs,
    requirements::{Ready, Workload},
};

/// Nodes Ready, the workloads of all capabilities available, and every node reaches the pods and the Service of CoreDNS.
pub(crate) struct Verify;

impl Capability for Verify {
    fn name(&self) -> &'static str {
        "verify"
    }

    fn skipped(&self, inputs: &Inputs) -> Option<&'static str> {
        inputs.requirements.ready.iter().find_map(|ready| match ready {
            Ready::Never(why) => Some(*why),
            Ready::Workload(_) | Ready::StaticPods(_) => None,
        })
    }

    /// Left out only when the probe saw all of it and nothing has changed since.
    fn verify(&self, inputs: &Inputs, changes: bool) -> Vec<Task> {
        if !changes && is_ready(inputs) {
            return Vec::new();
        }
        vec![wait_until_ready::task(inputs), ask_pods::task(inputs)]
    }
}

/// What the API says, at the time of the probe.
fn is_ready(inputs: &Inputs) -> bool {
    let state = &inputs.state;
    let available = |Workload { namespace, path, .. }: &Workload| {
        let name = path.split_once('/').map_or(*path, |(_, name)| name);
        state.is_available(&format!("{namespace}/{name}"))
    };
    inputs.nodes().iter().all(|(host, _)| inputs.is_ready(host))
        && inputs.requirements.workloads().iter().all(available)
}
