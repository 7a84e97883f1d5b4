//! Nodes: hosts that have joined, run a kubelet with the settings of the cluster, are registered with the labels and taints of
//! the file, and accept pods.

mod check;
mod close_for_joins;
mod delete_node;
pub(crate) mod drain;
mod join_worker;
mod kubelets;
mod leftovers;
mod moving;
mod pause_for_services;
pub(crate) mod record_joins;
mod remove_node_files;
mod replaced;
mod set_labels;
pub(crate) mod turn;
mod wait_for_nodes;

use kk_config::{Host, Role};
use kk_engine::{ProbeSpec, Task};
pub(crate) use kubelets::start_kubelet::{is_ready_again, works as kubelet_works};
use kubelets::{local_api, pods_known, rollout, start_kubelet, update_kubelet_settings};
use moving::endpoint;
pub(crate) use moving::{
    endpoint::{LEADS, asked_at, refused, uses_balancer},
    finish_moves, mark_moves, moving,
};

use crate::{
    base::{
        error::BuildError,
        findings::Findings,
        host_layout::{JOINING, MOVING, UPGRADING},
    },
    model::{
        capability::{Capability, Stage},
        inputs::Inputs,
        options::Leaving,
    },
};

/// Every node.
pub(crate) struct Nodes;

impl Capability for Nodes {
    fn name(&self) -> &'static str {
        "nodes"
    }

    fn stage(&self) -> Stage {
        Stage::Hosts
    }

    fn asks(&self, inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
        probe.files.extend([JOINING, MOVING, UPGRADING].map(str::to_owned));
        if host.is_node() {
            probe.ask(&pods_known::question(host));
            probe.ask(&leftovers::LEFTOVERS);
            if let Some(question) = endpoint::question(inputs.spec) {
                probe.ask(&question);
            }
            if host.has_role(&Role::ControlPlane) {
                probe.ask(&local_api::SERVER);
            }
        }
    }

    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        check::findings(inputs, found);
        moving::findings(inputs, found);
        replaced::findings(inputs, found);
        leftovers::findings(inputs, found);
    }

    /// Labels and taints are set before the first pods start; labels and taints from other sources stay.
    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        let rollout = rollout::of_kubelets(inputs)?;
        let mut tasks = vec![
            join_worker::task(inputs),
            update_kubelet_settings::task(inputs, &rollout)?,
            start_kubelet::task(inputs, &rollout)?,
            wait_for_nodes::task(inputs),
            pause_for_services::task(inputs),
            set_labels::task(inputs),
            close_for_joins::task(inputs),
        ];
        if inputs.command.is_create() {
            tasks.extend(turn::end_left(inputs));
        }
        if inputs.requirements.never_ready().is_some() {
            tasks.push(record_joins::task(inputs));
        }
        Ok(tasks)
    }

    fn leave(&self, inputs: &Inputs, leaving: &Leaving) -> Vec<Task> {
        let hosts: Vec<_> = inputs.spec.nodes().into_iter().filter(|host| leaving.has(host)).collect();
        // The pods of a permanently lost node cannot end.
        let drained = hosts.iter().filter(|_| !leaving.gone);
        let mut tasks: Vec<Task> = drained.map(|host| drain::task(inputs, host, &leaving.drain)).collect();
        tasks.extend(hosts.iter().map(|host| delete_node::task(inputs, host, leaving)));
        tasks
    }

    fn remove(&self, inputs: &Inputs) -> Vec<Task> {
        vec![remove_node_files::task(inputs)]
    }
}
