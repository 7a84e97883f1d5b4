//! Open the cluster for joins: create a bootstrap token, and read the CA by which joining nodes verify the cluster.

use std::sync::Arc;

use kk_engine::{HostWork, Task, actions::Command};

use crate::{
    base::{host_layout::KUBECTL, slots, token::token_secret},
    model::inputs::Inputs,
};

/// The token expires after one day, counted from now by the clock of the host, not from the time and by the clock of the plan.
/// The expiry matters only if a run is killed: otherwise, the task after the last join removes the token.
const MAKE_TOKEN: &str = "expires=$(date -u -d @$(($(date +%s) + 86400)) +%Y-%m-%dT%H:%M:%SZ)
sed \"s/EXPIRES/$expires/\" token.yaml | kubectl apply -f - >/dev/null
";

/// Does nothing unless a node is to join. A new cluster already has the token from `kubeadm init`.
pub(super) fn task(inputs: &Inputs) -> Task {
    let task = Task::new("open_for_joins", "Open the cluster for joins");
    if inputs.joining().is_empty() {
        return task;
    }
    let read_ca = "cat /etc/kubernetes/pki/ca.crt\n";
    let command = if inputs.is_initialised() {
        Command::new("make a bootstrap token", format!("{KUBECTL}{MAKE_TOKEN}{read_ca}"))
            .file("token.yaml", token_secret(&inputs.token, "EXPIRES").into_bytes())
    } else {
        Command::new("read the CA of the cluster", read_ca)
    };
    let action = command.output(Arc::new(|stdout, values| {
        values.fill(&slots::cluster_ca_slot(), stdout.to_owned());
        Ok(())
    }));
    let first = &inputs.api_host.name;
    let mut work = HostWork::new(vec![Box::new(action)])
        .needs(slots::initialised_slot())
        .provides(slots::cluster_ca_slot().key());
    if inputs.is_initialised() {
        work = work.needs(slots::node_tools_slot(first));
    }
    task.on(first, work)
}
