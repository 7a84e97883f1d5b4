//! Remove kube-vip from hosts on which the file no longer wants it.

use kk_config::{Balancer, Host, Role};
use kk_engine::{Facts, HostWork, Task, actions::Command};

use super::{MANIFEST, is_installed};
use crate::{
    base::{shell::script, slots},
    capabilities::nodes,
    model::inputs::Inputs,
};

/// Runs after all nodes and their pods use another address.
pub(crate) fn task(inputs: &Inputs) -> Task {
    let is_wanted = matches!(inputs.spec.control_plane_endpoint.balancer, Balancer::KubeVip(_));
    remove(
        inputs,
        |host, facts| is_installed(facts) && !(is_wanted && host.has_role(&Role::ControlPlane)),
        |work| {
            let names = inputs.nodes().into_iter().map(|(host, _)| slots::api_name_slot(&host.name));
            let moved = nodes::moving(inputs).into_iter().map(|host| slots::moved_slot(&host.name));
            names.chain(moved).fold(work, HostWork::after)
        },
    )
}

/// Runs when hosts leave the cluster, whatever the file specifies now.
pub(crate) fn of_cluster(inputs: &Inputs) -> Task {
    remove(inputs, |_, facts| facts.owns(MANIFEST), |work| work)
}

fn remove(
    inputs: &Inputs,
    leaves: impl Fn(&Host, &Facts) -> bool,
    after: impl Fn(HostWork) -> HostWork,
) -> Task {
    let mut task = Task::new("remove_kube_vip", "Remove kube-vip");
    for (host, _) in inputs.nodes().into_iter().filter(|(host, facts)| leaves(host, facts)) {
        let text = script(&[("node", &host.name)], include_str!("remove_kube_vip.sh"));
        let command = Command::new("remove kube-vip and its address", text);
        task = task.on(&host.name, after(HostWork::new(vec![Box::new(command)])));
    }
    task
}
