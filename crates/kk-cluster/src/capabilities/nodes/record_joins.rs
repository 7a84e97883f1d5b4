//! Record that nodes have joined.

use kk_config::Host;
use kk_engine::{Facts, HostWork, Task, actions::Command};

use crate::{
    base::{host_layout::JOINING, slots},
    model::{cluster::Cluster, inputs::Inputs},
};

/// Contains the token of the join. kubeadm removes the file when the kubelet has a certificate; a join that was killed earlier
/// leaves it behind.
const TOKEN_FILE: &str = "/etc/kubernetes/bootstrap-kubelet.conf";

/// Whether a node still has the mark of a join that did not finish.
pub(crate) fn is_marked(facts: &Facts) -> bool {
    facts.files.contains_key(JOINING)
}

/// Whether work is left before the node is like the others: it has to join, or a run that ended early left the mark. The control
/// plane whose API is used has joined already.
pub(crate) fn is_unfinished(cluster: &Cluster, host: &Host) -> bool {
    let has_mark = cluster.facts(host).is_some_and(is_marked);
    has_mark || host.name != cluster.api_host.name && !cluster.has_joined(host)
}

/// The mark is removed last: while it exists, the next run does the remaining work.
fn script() -> String {
    format!("rm -f {TOKEN_FILE}\nrm -f {JOINING}")
}

/// A join writes a mark before its first change. The mark is removed last: after the labels, and, if nodes become Ready, after
/// that. If a run was killed in between, the next run does the remaining work and waits for the node.
pub(crate) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("record_joins", "Record that nodes have joined");
    for (host, _) in inputs.nodes().into_iter().filter(|(host, _)| is_unfinished(inputs, host)) {
        let done = Command::new("record that the node has joined", script());
        let mut work = HostWork::new(vec![Box::new(done)])
            .needs(slots::joined_slot(&host.name))
            .needs(slots::labels_set_slot());
        if inputs.requirements.never_ready().is_none() {
            work = work.needs(slots::pod_addresses_slot().key());
        }
        task = task.on(&host.name, work);
    }
    task
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing;

    #[test]
    fn the_token_of_a_join_goes_before_its_mark() {
        for can_go in [true, false] {
            let directory = tempfile::tempdir().unwrap();
            let [token, mark] = ["token", "mark"].map(|name| directory.path().join(name));
            fs::write(&mark, "").unwrap();
            if can_go {
                fs::write(&token, "secret").unwrap();
            } else {
                fs::create_dir(&token).unwrap();
            }
            let text = script()
                .replace(TOKEN_FILE, &token.display().to_string())
                .replace(JOINING, &mark.display().to_string());
            assert_eq!(testing::run_script(directory.path(), &text).status.success(), can_go);
            assert_eq!((token.exists(), mark.exists()), (!can_go, !can_go));
        }
    }
}
