//! Open the cluster for joins: create a bootstrap token, and read the CA by which joining nodes verify the cluster.

use std::sync::Arc;

use kk_engine::{HostWork, Task, actions::Command};

use crate::{
    base::{
        host_layout::KUBECTL,
        slots,
        token::{HOURS, token_secret},
    },
    model::inputs::Inputs,
};

/// The life of the token begins now by the clock of the host, not at the time and by the clock of the plan.
const MAKE_TOKEN: &str = "expires=$(date -u -d @$(($(date +%s) + hours * 3600)) +%Y-%m-%dT%H:%M:%SZ)
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
        Command::new("make a bootstrap token", format!("{KUBECTL}hours={HOURS}\n{MAKE_TOKEN}{read_ca}"))
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

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_token_expires_some_hours_after_it_is_made_by_the_clock_of_the_host() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("token.yaml"), "EXPIRES\n").unwrap();
        let script = format!(
            "kubectl() {{ cat >applied; }}\nbefore=$(date +%s)\nhours={HOURS}\n{MAKE_TOKEN}after=$(date +%s)\n\
             expires=$(date -d \"$(cat applied)\" +%s)\n\
             [ $((expires - before)) -ge 14400 ] && [ $((expires - after)) -le 14400 ]"
        );
        let mut shell = Command::new("sh");
        let output = shell.args(["-euc", &script]).current_dir(directory.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
