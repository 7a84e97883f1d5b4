//! Findings about nodes of the cluster that the file does not name, and about nodes that an upgrade left in their turn.

use super::turn;
use crate::{base::findings::Findings, model::inputs::Inputs};

pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    not_named(inputs, found);
    // An upgrade continues with these nodes.
    if inputs.command.changes().is_none() {
        in_turn(inputs, found);
    }
}

/// A run that was killed while pods moved has changed no version, so only the mark shows it.
fn in_turn(inputs: &Inputs, found: &mut Findings) {
    for (host, _) in inputs.nodes().into_iter().filter(|(_, facts)| turn::is_begun(facts)) {
        found.warning(
            host,
            "its turn in an upgrade is not finished: it may be cordoned",
            "kk upgrade resumes it; kk create cluster with the current version of the cluster ends its turn",
        );
    }
}

/// Nodes that were removed from the file, or that another tool joined. kk reports them and does not touch them.
fn not_named(inputs: &Inputs, found: &mut Findings) {
    let named = |name: &str| inputs.spec.nodes().iter().any(|host| host.name == name);
    let others: Vec<&str> =
        inputs.state.nodes.keys().map(String::as_str).filter(|name| !named(name)).collect();
    let is_sick = |name: &&str| inputs.state.nodes.get(*name).is_some_and(|node| !node.ready);
    let (sick, well): (Vec<&str>, Vec<&str>) = others.into_iter().partition(is_sick);
    if !well.is_empty() {
        found.warning(
            None,
            format!("nodes that are in the cluster but not in the file: {}", well.join(", ")),
            "kk does not change them; to remove one, add it to the file and run kk delete node",
        );
    }
    if !sick.is_empty() {
        found.warning(
            None,
            format!(
                "nodes that are in the cluster but not in the file, and are not Ready: {}",
                sick.join(", ")
            ),
            "kk does not wait for them; if a host is lost: kubectl delete node NODE; to remove a node, add \
             it to the file and run kk delete node; otherwise repair it",
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        base::cluster_state::API,
        commands::{create_cluster, precheck::precheck},
        testing::{self, KUBERNETES},
    };

    /// The findings for a cluster that has these nodes in addition to the node of the file: name, and whether the node is Ready.
    async fn said(others: &[(&str, &str)]) -> Vec<String> {
        let spec = testing::sample("all-in-one.yaml");
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        let mut probed = testing::fresh(&spec);
        let nodes = others.iter().copied().chain([(spec.hosts[0].name.as_str(), "True")]);
        let lines: Vec<String> =
            nodes.map(|(name, ready)| format!("Node\t{name}\t{ready}\t{KUBERNETES}\t\t\n")).collect();
        let facts = probed.facts.values_mut().next().unwrap();
        facts.reply(&API, lines.concat() + "end\n");
        let inputs = session.create_inputs(&probed).await.unwrap();
        let found = precheck(&create_cluster::capabilities(&spec), &inputs);
        let about = found.into_iter().filter(|finding| finding.message.contains("but not in the file"));
        about.map(|finding| format!("{:?} {}", finding.severity, finding.message)).collect()
    }

    #[tokio::test]
    async fn nodes_that_left_the_file_are_named_in_order_and_those_that_are_lost_apart() {
        let well = "Warning nodes that are in the cluster but not in the file";
        assert_eq!(said(&[]).await, [""; 0]);
        assert_eq!(said(&[("z9", "True"), ("a1", "True")]).await, [format!("{well}: a1, z9")]);
        assert_eq!(
            said(&[("z9", "Unknown"), ("a1", "True"), ("b2", "False")]).await,
            [format!("{well}: a1"), format!("{well}, and are not Ready: b2, z9")]
        );
    }
}
