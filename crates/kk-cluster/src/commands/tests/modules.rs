//! Lists of modules: the differences between them, and the dependencies between modules.

use crate::{
    commands::{create_cluster, delete_cluster},
    testing,
};

/// Capabilities of a create that a delete does not list, and why: their files on a host are in its record, or are removed with
/// another capability.
const NOTHING_TO_REMOVE: [(&str, &str); 9] = [
    ("programs", "files are recorded"),
    ("images", "they are the runtime's data"),
    ("control-plane", "its pods go with the runtime, its files with the node's"),
    ("dns", "its objects go with etcd's data"),
    ("manifests", "objects go with etcd's data"),
    ("versions", "its note goes with the node's files"),
    ("verify", "it changes nothing"),
    ("addons", "releases and objects go with etcd's data, notes with the node's files"),
    ("kubesphere", "the operator removes it before all else; its image goes with the runtime's"),
];

#[test]
fn what_a_create_installs_a_delete_removes() {
    for name in ["three-nodes.yaml", "all-in-one.yaml"] {
        let mut spec = testing::sample(name);
        spec.addons = testing::addons(
            "[{name: a, sources: {yaml: {path: [a.yaml]}}}, \
             {name: b, phase: network, sources: {yaml: {path: [b.yaml]}}}]",
        );
        let removed = delete_cluster::capabilities(&spec);
        for capability in create_cluster::capabilities(&spec) {
            let listed = removed.iter().any(|other| other.name() == capability.name());
            let excused = NOTHING_TO_REMOVE.iter().any(|(name, _)| *name == capability.name());
            assert!(listed != excused, "{}", capability.name());
        }
    }
}

/// The slots that every module needs and provides, on one host that has all roles.
#[tokio::test]
async fn modules_wait_for_each_other_only_through_these_slots() {
    let spec = testing::sample("all-in-one.yaml");
    let directory = tempfile::tempdir().unwrap();
    let (session, fresh) = (testing::session(spec.clone(), directory.path()), testing::fresh(&spec));
    let inputs = session.create_inputs(&fresh).await.unwrap();
    let words =
        |keys: &[kk_engine::SlotKey]| keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let mut lines = Vec::new();
    for module in create_cluster::pipeline(&inputs).unwrap().modules {
        lines.push(module.name.to_owned());
        for task in &module.tasks {
            for work in task.hosts.values() {
                let slots = [("needs", &work.needs), ("after", &work.after), ("provides", &work.provides)];
                for (verb, keys) in slots.into_iter().filter(|(_, keys)| !keys.is_empty()) {
                    lines.push(format!("  {} {verb} {}", task.name, words(keys)));
                }
            }
        }
    }
    insta::assert_snapshot!(lines.join("\n"));
}
