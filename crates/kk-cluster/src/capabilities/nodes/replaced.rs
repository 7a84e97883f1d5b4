//! Machines that differ from the machine that the cluster knows by the same name: a new machine in place of a lost one, a machine
//! that would take over the name of a running node, and copies.

use kk_config::Host;
use kk_engine::Facts;

use crate::{
    base::{cluster_state::Node, findings::Findings, questions::MACHINE_ID},
    model::inputs::Inputs,
};

/// Number of digits of an id in messages.
const SHOWN: usize = 8;

pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    for (host, facts) in inputs.nodes() {
        let Some(own) = id(facts) else { continue };
        if inputs.has_joined(host) {
            copies(inputs, host, facts, &own, found);
        } else if let Some(node) =
            inputs.state.nodes.get(&host.name).filter(|node| is_other(&node.machine, &own))
        {
            replaced(inputs, host, node, &own, found);
        }
    }
}

fn id(facts: &Facts) -> Option<String> {
    facts.answer(&MACHINE_ID).answered().filter(|id| !id.is_empty())
}

fn is_other(known: &str, own: &str) -> bool {
    !known.is_empty() && known != own
}

fn short(id: &str) -> &str {
    id.get(..SHOWN).unwrap_or(id)
}

/// A host without any files of the cluster, under the name of one of its nodes.
fn replaced(inputs: &Inputs, host: &Host, node: &Node, own: &str, found: &mut Findings) {
    let ids = format!("its machine id is {}, but the node has {}", short(own), short(&node.machine));
    if inputs.is_ready(host) {
        let address = node.addresses.first().map_or("an unknown address", String::as_str);
        found.error(
            host,
            format!("another machine with this name is in the cluster and Ready, at {address}: {ids}"),
            format!(
                "give this host another name, or remove that node: kk delete node {}; a node that was just \
                 switched off is shown as Ready for a minute, so run again then",
                host.name
            ),
        );
    } else {
        found.adapted(
            host,
            format!("it is a new machine that replaces a node of the cluster: {ids}"),
            "it joins with the name, labels and taints of that node",
        );
    }
}

/// A host whose cluster files were created on another machine, which also runs.
fn copies(inputs: &Inputs, host: &Host, facts: &Facts, own: &str, found: &mut Findings) {
    let Some(recorded) = facts.owned.identity().map(|identity| &identity.machine_id) else { return };
    if recorded == own || recorded == "-" {
        return;
    }
    let is_original =
        |(other, facts): &(&Host, &Facts)| other.name != host.name && id(facts).as_ref() == Some(recorded);
    let in_file = inputs.answered().into_iter().find(is_original).map(|(other, _)| other.name.clone());
    let runs_elsewhere = |node: &&Node| {
        let here = node.addresses.contains(&host.internal_address.to_string());
        inputs.is_ready(host) && node.machine == *recorded && !here
    };
    let elsewhere = inputs.state.nodes.get(&host.name).filter(runs_elsewhere);
    let elsewhere =
        elsewhere.and_then(|node| node.addresses.first()).map(|address| format!("the machine at {address}"));
    if let Some(original) = in_file.or(elsewhere) {
        found.error(
            host,
            format!("it is a copy of {original}: its cluster files were created on the machine {}", short(recorded)),
            "two machines cannot be the same node: reinstall this one, or stop the other one and run again a minute later",
        );
    }
}

#[cfg(test)]
mod tests {
    use kk_engine::{Finding, Severity};

    use crate::{
        base::{cluster_state::API, questions::MACHINE_ID},
        commands::{
            add_nodes::tests::{ANSWERED, probed, spec},
            create_cluster,
            precheck::precheck,
        },
        testing::{self, KUBERNETES},
    };

    /// The findings about the machine of a host, if the cluster knows it by this line and the hosts have these ids. `record` is
    /// the id in the record of n2.
    async fn found(host: &str, node: &str, ids: [(&str, &str); 2], record: &str) -> Vec<Finding> {
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec(), directory.path());
        let mut probed = probed(&session, None).await;
        probed.facts.get_mut("n1").unwrap().reply(&API, format!("{node}{ANSWERED}"));
        for (name, id) in ids {
            probed.facts.get_mut(name).unwrap().reply(&MACHINE_ID, id);
        }
        let n2 = probed.facts.get_mut("n2").unwrap();
        n2.owned = vec![format!("cluster\tt\tca\t{record}")].into();
        let inputs = session.create_inputs(&probed).await.unwrap();
        let found = precheck(&create_cluster::capabilities(&spec()), &inputs);
        let is_about = |finding: &Finding| {
            finding.host.as_deref() == Some(host)
                && finding.message.contains("machine")
                && !finding.message.contains("cluster t")
        };
        found.into_iter().filter(is_about).collect()
    }

    /// n4 is in the file, and its host has no files of the cluster.
    #[tokio::test]
    async fn a_new_machine_under_a_known_name_replaces_one_that_is_lost_and_not_one_that_runs() {
        let node =
            |ready: &str, id: &str| format!("Node\tn4\t{ready}\t{KUBERNETES}\t\t\t\t192.0.2.77 \t{id}\n");
        for (node, severity, words) in [
            (
                node("True", "aaaa"),
                Some(Severity::Error),
                "in the cluster and Ready, at 192.0.2.77: its machine id is bbbb",
            ),
            (node("False", "aaaa"), Some(Severity::Adapted), "it is a new machine that replaces a node"),
            (node("False", "bbbb"), None, ""),
            (node("False", ""), None, ""),
            (String::new(), None, ""),
        ] {
            let found = found("n4", &node, [("n1", "cccc"), ("n4", "bbbb")], "-").await;
            assert_eq!(found.first().map(|one| one.severity), severity, "{node}: {found:?}");
            assert!(found.iter().all(|one| one.message.contains(words)), "{found:?}");
        }
    }

    #[tokio::test]
    async fn a_copy_is_told_from_a_machine_that_moves() {
        let node =
            |address: &str, id: &str| format!("Node\tn2\tTrue\t{KUBERNETES}\t\t\t\t{address} \t{id}\n");
        for (own, record, node, copy) in [
            // The same machine at another address.
            ("aaaa", "aaaa", node("192.0.2.77", "aaaa"), None),
            // Another machine with the same files, while the original runs.
            ("bbbb", "aaaa", node("192.0.2.77", "aaaa"), Some("the machine at 192.0.2.77")),
            // Another machine with the same files, in place of the original.
            ("bbbb", "aaaa", node("192.0.2.2", "bbbb"), None),
            // A copy of n1.
            ("bbbb", "cccc", node("192.0.2.2", "bbbb"), Some("copy of n1")),
        ] {
            let found = found("n2", &node, [("n1", "cccc"), ("n2", own)], record).await;
            let copies: Vec<_> = found.iter().filter(|one| one.message.contains("copy")).collect();
            assert_eq!(copies.len(), usize::from(copy.is_some()), "{own} {record}: {found:?}");
            assert!(copies.iter().all(|one| one.message.contains(copy.unwrap_or_default())), "{found:?}");
        }
    }
}
