//! Record that nodes have joined.

use kk_config::Host;
use kk_engine::{Facts, HostWork, Task, actions::Command};

use crate::{
    base::{host_layout::JOINING, slots},
    model::{cluster::Cluster, inputs::Inputs},
};

/// Holds the token of the join. kubeadm removes it when the kubelet has a certificate; a join that was killed before that does not.
const TOKEN_FILE: &str = "/etc/kubernetes/bootstrap-kubelet.conf";

/// Whether a node still has the mark of a join that has not been seen through to its end.
pub(crate) fn is_marked(facts: &Facts) -> bool {
    facts.files.contains_key(JOINING)
}

/// Whether something is left to do before the node is like the others: it is to join, or a run that ended early has left it
/// with the mark. The control plane at which the API is asked is there.
pub(crate) fn is_unfinished(cluster: &Cluster, host: &Host) -> bool {
    let has_mark = cluster.facts(host).is_some_and(is_marked);
    has_mark || host.name != cluster.api_host.name && !cluster.has_joined(host)
}

/// The mark goes last: while it is there, the next run does the rest.
fn script() -> String {
    format!("rm -f {TOKEN_FILE}\nrm -f {JOINING}")
}

/// A join writes a mark before its first change. It goes last: after the labels, and where nodes become Ready, after that. So
/// a run that comes after one that was killed in between does the rest, and waits for the node.
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
