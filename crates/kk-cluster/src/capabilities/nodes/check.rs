//! Nodes of the cluster that the file does not name, and those that an upgrade has left in their turn.

use super::turn;
use crate::{findings::Findings, inputs::Inputs};

pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    not_named(inputs, found);
    // An upgrade goes on with them.
    if inputs.changes.is_none() {
        in_turn(inputs, found);
    }
}

/// A run that was killed while pods moved has changed no version: nothing else shows it.
fn in_turn(inputs: &Inputs, found: &mut Findings) {
    for (host, _) in inputs.nodes().into_iter().filter(|(_, facts)| turn::is_begun(facts)) {
        found.warning(
            host,
            "its turn in an upgrade has begun and has not ended: it may take no pods",
            "kk upgrade goes on with it; kk create cluster with the version of the cluster ends its turn",
        );
    }
}

/// They left the file, or somebody else has joined them. Nothing is done to them, and that is said.
fn not_named(inputs: &Inputs, found: &mut Findings) {
    let named = |name: &str| inputs.spec.nodes().iter().any(|host| host.name == name);
    let others: Vec<&str> =
        inputs.state.nodes.keys().map(String::as_str).filter(|name| !named(name)).collect();
    if !others.is_empty() {
        found.warning(
            None,
            format!("nodes of the cluster that the file does not name: {}", others.join(", ")),
            "they are left as they are; where one is to go, name it in the file and run kk delete node; where its host is lost: \
             kubectl delete node NODE",
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::{cluster_state::API, pipelines::create_cluster, precheck::precheck, testing};

    #[tokio::test]
    async fn nodes_that_left_the_file_are_named_in_order() {
        let spec = testing::sample("all-in-one.yaml");
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        for (others, said) in [(&[][..], None), (&["z9", "a1"], Some("does not name: a1, z9"))] {
            let mut probed = testing::fresh(&spec);
            let names = others.iter().copied().chain([spec.hosts[0].name.as_str()]);
            let lines: Vec<String> = names.map(|name| format!("Node\t{name}\tTrue\tv1.36.4\t\t\n")).collect();
            let facts = probed.facts.values_mut().next().unwrap();
            facts.reply(&API, lines.concat() + "end\n");
            let inputs = session.create_inputs(&probed).await.unwrap();
            let found = precheck(&create_cluster::capabilities(&spec), &inputs);
            let about = found.iter().find(|finding| finding.message.contains("does not name"));
            assert_eq!(
                about.map(|finding| finding.message.ends_with(said.unwrap_or_default())),
                said.map(|_| true)
            );
        }
    }
}
