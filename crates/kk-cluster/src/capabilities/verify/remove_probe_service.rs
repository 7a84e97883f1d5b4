//! Remove the Service by which the verification checked that nodes learn of new Services, and the namespace that contains another
//! Service.

use kk_engine::{HostWork, Task, actions::Command};

use crate::{
    base::{
        host_layout::KUBECTL,
        requirements::{Object, probe_service},
        slots,
    },
    model::inputs::Inputs,
};

/// Runs after all nodes have queried the Service, even if a node got no answer.
pub(super) fn task(inputs: &Inputs) -> Task {
    let Object { namespace, name, .. } = probe_service();
    // The Service is removed last: the probe queries it, and a run that finds it removes both. No task waits for the removal of
    // the namespace.
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
