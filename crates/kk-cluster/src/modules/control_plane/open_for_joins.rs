//! Open the cluster for joins: a bootstrap token, and the CA by which joining nodes know the cluster.

use std::sync::Arc;

use kk_engine::{HostWork, Task, actions::Command};

use crate::{
    Target, kubeadm,
    modules::{KUBECTL, joining, slots},
};

/// The hour begins now and by the host's clock, not when and where the plan was made.
const MAKE_TOKEN: &str = "expires=$(date -u -d @$(($(date +%s) + 3600)) +%Y-%m-%dT%H:%M:%SZ)
sed \"s/EXPIRES/$expires/\" token.yaml | kubectl apply -f - >/dev/null
";

/// Only when some node is to join. A cluster made just now knows the token from `kubeadm init`.
pub(super) fn task(target: &Target) -> Task {
    let task = Task::new("open_for_joins", "Open the cluster for joins");
    if joining(target).is_empty() {
        return task;
    }
    let read_ca = "cat /etc/kubernetes/pki/ca.crt\n";
    let command = if target.is_initialised() {
        Command::new("make a bootstrap token for an hour", format!("{KUBECTL}{MAKE_TOKEN}{read_ca}"))
            .file("token.yaml", kubeadm::token_secret(&target.token, "EXPIRES").into_bytes())
    } else {
        Command::new("read the CA of the cluster", read_ca)
    };
    let action = command.output(Arc::new(|stdout, values| {
        values.fill(&slots::cluster_ca(), stdout.to_owned());
        Ok(())
    }));
    let first = &target.spec.first_control_plane().name;
    let mut work = HostWork::new(vec![Box::new(action)])
        .needs(slots::initialised().key())
        .provides(slots::cluster_ca().key());
    if target.is_initialised() {
        work = work.needs(slots::node_tools(first).key());
    }
    task.on(first, work)
}
