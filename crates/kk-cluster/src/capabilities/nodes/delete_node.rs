//! Delete the object of a node that leaves.

use kk_config::{Host, Role};
use kk_connector::quote;
use kk_engine::{HostWork, Task, actions::Command};

use crate::{
    base::{host_layout::KUBECTL, slots},
    model::{inputs::Inputs, options::Leaving},
};

/// Afterwards the cluster no longer depends on the node. If the node is permanently lost, its pods are deleted with it.
pub(super) fn task(inputs: &Inputs, host: &Host, leaving: &Leaving) -> Task {
    let name = quote(&host.name);
    let delete = Command::new(
        "delete its object",
        format!("{KUBECTL}kubectl delete node {name} --ignore-not-found --timeout=60s >/dev/null\n"),
    );
    let mut work =
        HostWork::new(vec![Box::new(delete)]).about(&host.name).provides(slots::left_slot(&host.name));
    if !leaving.gone {
        work = work.needs(slots::drained_slot(&host.name));
    }
    if host.has_role(&Role::Etcd) {
        work = work.needs(slots::member_removed_slot(&host.name));
    }
    Task::new(format!("delete_node_{}", host.name), format!("Delete node {}", host.name))
        .retry(kk_engine::Retry::times(3))
        .on(&inputs.api_host.name, work)
}
