//! Remove the Service by which was seen whether nodes learn of new ones, and the namespace with another one.

use kk_engine::{HostWork, Task, actions::Command};

use crate::{
    base::{
        host_layout::KUBECTL,
        requirements::{Object, probe_service},
        slots,
    },
    model::inputs::Inputs,
};

/// After all nodes have asked it, also when one got no answer.
pub(super) fn task(inputs: &Inputs) -> Task {
    let Object { namespace, name, .. } = probe_service();
    // The Service is the last to go: the probe asks for it, and a run that finds it removes both. Nobody waits for a namespace.
    let remove = format!(
        "{KUBECTL}kubectl delete namespace {name} --ignore-not-found --wait=false >/dev/null\n\
         kubectl -n {namespace} delete service {name} --ignore-not-found >/dev/null\n"
    );
    let remove = Command::new(format!("remove Service {name}, if it was made"), remove).only_waits();
    let mut work = HostWork::new(vec![Box::new(remove)]).needs(slots::node_tools_slot(&inputs.api_host.name));
    for (host, _) in inputs.nodes() {
        work = work.after(slots::pods_asked_slot(&host.name));
    }
    Task::new("remove_probe_service", "Remove the Service of the verification")
        .on(&inputs.api_host.name, work)
}
