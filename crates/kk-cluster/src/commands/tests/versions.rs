//! Versions of the components in a running cluster.

use kk_artifact::Component;

use crate::{
    commands::{create_cluster, precheck},
    model::command::Command,
    testing,
};

/// A file without pins, for a cluster that another kk created.
#[tokio::test]
async fn a_cluster_keeps_its_versions_unless_the_file_names_others() {
    use crate::capabilities::versions::RECORDED;
    let directory = tempfile::tempdir().unwrap();
    let plan_with = async |pin: Option<&str>, minor: u32, puts_back: bool| {
        let mut spec = testing::sample("all-in-one.yaml");
        spec.components.etcd = pin.map(str::to_owned);
        let note = format!("kubernetes: \"v1.{minor}.0\"\netcd: \"3.6.1\"\npause: \"3.9\"\n");
        let mut probed = testing::fresh(&spec);
        probed.facts.values_mut().for_each(|facts| facts.reply(&RECORDED, note.clone()));
        let session = testing::session(spec, directory.path());
        let mut inputs = session.create_inputs(&probed).await.unwrap();
        if puts_back {
            inputs.command = Command::RollBack;
        }
        let found = precheck::precheck(&create_cluster::capabilities(inputs.spec), &inputs);
        let found = found.iter().map(|finding| finding.message.clone()).collect::<Vec<_>>().join("\n");
        (
            inputs.versions.of(Component::Etcd),
            inputs.images.of(Component::Pause),
            inputs.programs.clone(),
            found,
        )
    };
    let plan = async |pin, minor| plan_with(pin, minor, false).await;
    let minor = testing::sample("all-in-one.yaml").kubernetes.version.minor;
    let (etcd, pause, programs, found) = plan(None, minor).await;
    assert_eq!((etcd.as_str(), pause.as_str()), ("3.6.1", "registry.k8s.io/pause:3.9"));
    assert!(programs.values().any(|(artifact, _)| artifact.to_string().contains("3.6.1")));
    assert!(found.contains("a new cluster would get other versions: etcd") && found.contains("(here 3.6.1)"));
    let (etcd, _, _, found) = plan(Some("3.6.2"), minor).await;
    assert!(etcd == "3.6.2" && !found.contains("etcd"), "{found}");
    let (_, _, _, found) = plan(Some("3.5.9"), minor).await;
    assert!(
        found.contains("the cluster has etcd 3.6.1, but this file") && found.contains("an older version"),
        "{found}"
    );
    let (_, _, _, found) = plan(Some("3.5.9"), minor - 1).await;
    assert!(
        found.contains("the cluster has etcd 3.6.1, but this file"),
        "an upgrade is no way back either: {found}"
    );
    let (_, _, _, found) = plan(Some("3.5.9"), minor + 1).await;
    assert!(
        found.contains("the cluster has etcd 3.6.1, but this file"),
        "nor is an older version than that of a control plane which is ahead: {found}"
    );
    let (_, _, _, found) = plan_with(Some("3.5.9"), minor + 1, true).await;
    assert!(!found.contains("an older version"), "hosts that are put back get what they had: {found}");
    let (etcd, ..) = plan(None, minor - 1).await;
    assert_ne!(etcd, "3.6.1", "another minor version of Kubernetes has versions of its own");
}

#[tokio::test]
async fn versions_that_cannot_be_read_are_not_replaced() {
    let spec = testing::sample("all-in-one.yaml");
    let directory = tempfile::tempdir().unwrap();
    let mut probed = testing::fresh(&spec);
    probed.facts.values_mut().for_each(|facts| facts.time_out(&crate::capabilities::versions::RECORDED));
    let session = testing::session(spec, directory.path());
    let inputs = session.create_inputs(&probed).await.unwrap();
    let found = precheck::precheck(&create_cluster::capabilities(inputs.spec), &inputs);
    assert_eq!(found[0].severity, kk_engine::Severity::Error);
    assert!(found[0].message.contains("cannot be read: no answer within 60 s"), "{}", found[0].message);
}
