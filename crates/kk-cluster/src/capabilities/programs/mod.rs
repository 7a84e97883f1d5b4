//! Programs: downloaded once to the control machine, then uploaded to the hosts that lack them.

mod download;
mod fetch;
mod upload_kube_programs;
mod upload_node_tools;
mod upload_programs;
mod upload_runtime;

use kk_artifact::Component;
use kk_config::Host;
use kk_engine::{Action as _, ProbeSpec, Task};

use crate::{BuildError, capability::Capability, inputs::Inputs};
pub(crate) use upload_programs::UploadPrograms;

/// The programs that the other capabilities need.
pub(crate) struct Programs;

impl Capability for Programs {
    fn name(&self) -> &'static str {
        "programs"
    }

    fn asks(&self, _inputs: &Inputs, _host: &Host, probe: &mut ProbeSpec) {
        probe.files.extend(["/usr/local/bin/*", "/opt/cni/bin/*"].map(str::to_owned));
        probe.disks.insert("/usr/local/bin".to_owned());
    }

    /// Uploads are in the order of need: what must start first goes first.
    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        let mut tasks = download::tasks(inputs);
        tasks.push(upload_runtime::task(inputs));
        tasks.push(upload_kube_programs::task(inputs));
        tasks.push(upload_node_tools::task(inputs));
        Ok(tasks)
    }
}

/// Downloads to the control machine only.
pub(crate) fn download(inputs: &Inputs) -> Vec<Task> {
    download::tasks(inputs)
}

/// Whether this run replaces a component's programs on a host.
pub(crate) fn changes(inputs: &Inputs, host: &Host, component: Component) -> bool {
    inputs
        .facts(host)
        .is_some_and(|facts| UploadPrograms::new(inputs, host, &[component]).check(facts).is_needed())
}
