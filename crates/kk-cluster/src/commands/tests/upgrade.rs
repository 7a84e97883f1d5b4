//! Steps of an upgrade: consecutive minor versions, and components that get or keep a version.
//!
//! The versions are the subject of these tests, so each test specifies them; none depends on the default version.

use std::{collections::BTreeSet, time::Duration};

use kk_artifact::Component;
use kk_config::{KubeVersion, NEWEST_MINOR, OLDEST_MINOR, Spec};
use kk_engine::{FileFact, Finding, Plan, Severity};

use crate::{
    base::{host_layout::UPGRADING, probed::Probed, questions::SETTINGS},
    capabilities::{
        etcd::HEALTHY,
        versions::{RECORDED, is_older_minor},
    },
    commands::{
        add_nodes::tests::{ANSWERED, probed, spec, with_etcd_on},
        create_cluster, precheck,
        session::Session,
        upgrade::pipeline,
    },
    model::{capability::Stage, options::Drain},
    testing,
};

fn version(text: &str) -> KubeVersion {
    text.parse().unwrap()
}

/// Capabilities that deploy add-ons. An add-on must not be newer than any API server.
const ADD_ONS: [&str; 5] = ["kube-proxy", "network", "dns", "manifests", "kubesphere"];

#[test]
fn each_capability_changes_at_its_stage_of_an_upgrade() {
    for capability in create_cluster::capabilities(&spec()) {
        let expected = match capability.name() {
            name if ADD_ONS.contains(&name) => Stage::AddOns,
            "verify" => Stage::Verification,
            _ => Stage::Hosts,
        };
        assert_eq!(capability.stage(), expected, "{}", capability.name());
    }
}

/// A control plane with etcd and a worker, at this version of Kubernetes.
fn two_nodes(version: KubeVersion) -> Spec {
    let mut spec = spec();
    spec.hosts.truncate(2);
    spec.kubernetes.version = version;
    spec
}

/// The two nodes at the version of this session, with these lines in their note of versions.
async fn running(session: &Session, note: &str) -> Probed {
    let version = session.spec().kubernetes.version;
    let nodes = ["n1", "n2"].map(|name| format!("Node\t{name}\tTrue\t{version}\t\t\t\n")).concat();
    let mut probed = probed(session, Some(&(nodes + ANSWERED))).await;
    let note = format!("kubernetes: \"{version}\"\n{note}");
    let n1 = probed.facts.get_mut("n1").unwrap();
    n1.reply(&RECORDED, note);
    n1.owned = vec!["made\t/etc/etcd.env"].into();
    n1.files.insert("/etc/kubernetes/pki/ca.key".into(), FileFact::default());
    probed
}

/// The tasks in the turn of a host, and its errors. The network is not used.
async fn turn(session: &Session, probed: &Probed, host: &str) -> (Vec<String>, Vec<Finding>) {
    let names = BTreeSet::from([host.to_owned()]);
    let inputs = session.upgrade_inputs(probed, names.clone()).await.unwrap();
    let how = Drain { force: false, timeout: Duration::from_mins(1) };
    let plan = Plan::new(pipeline::turn(&inputs, &names, &how).unwrap().pipeline, &probed.facts).unwrap();
    let early = plan.changes().into_iter().find(|task| ADD_ONS.contains(&task.module.as_str()));
    assert!(early.is_none(), "{early:?} is of an add-on, and other control planes have the old version");
    let found = precheck::precheck(&create_cluster::capabilities(session.spec()), &inputs);
    let errors = found.into_iter().filter(|finding| finding.severity == Severity::Error).collect();
    (plan.changes().into_iter().map(|task| format!("{} {}", task.host, task.task)).collect(), errors)
}

fn in_order(tasks: &[String], wanted: &[String]) -> bool {
    let position = |task: &String| tasks.iter().position(|one| one == task);
    let positions: Option<Vec<_>> = wanted.iter().map(position).collect();
    positions.is_some_and(|positions| positions.is_sorted())
}

#[tokio::test]
async fn two_minor_versions_are_two_rounds_of_complete_turns() {
    let directory = tempfile::tempdir().unwrap();
    for minor in OLDEST_MINOR..=NEWEST_MINOR - 2 {
        let of = |minor| KubeVersion { major: 1, minor, patch: 0 };
        let mut before = testing::session(two_nodes(of(minor)), directory.path());
        let target = testing::session(two_nodes(of(minor + 2)), directory.path());
        let way = target.hops(&running(&before, "").await).await.unwrap();
        let minors: Vec<_> = way.hops.iter().map(|hop| hop.minor).collect();
        assert_eq!((minors, way.turns), (vec![minor + 1, minor + 2], vec!["n1".into(), "n2".into()]));
        for hop in way.hops {
            let there = running(&before, "").await;
            let next = target.at_version(hop).unwrap();
            let back = next.to_put_back(&there, &[], before.spec().kubernetes.version, &next).unwrap();
            let etcd = back.create_inputs(&there).await.unwrap().versions.of(Component::Etcd);
            let wanted = next.create_inputs(&there).await.unwrap().versions.of(Component::Etcd);
            assert!(!is_older_minor(&etcd, &wanted), "{hop}: etcd {etcd} with the data of {wanted}");
            for (host, own) in [("n1", &["publish_settings", "apply_changed_settings"][..]), ("n2", &[])] {
                let (tasks, errors) = turn(&next, &there, host).await;
                assert!(errors.is_empty(), "{hop} {host}: {errors:?}");
                let begin = [format!("{host} drain_{host}")];
                let own = own.iter().chain(&["start_kubelet"]).map(|task| format!("{host} {task}"));
                let end = [format!("{host} uncordon_{host}"), format!("{host} end_turn_{host}")];
                let wanted: Vec<_> = begin.into_iter().chain(own).chain(end).collect();
                assert!(in_order(&tasks, &wanted), "{hop} {host}: no {wanted:?} in {tasks:#?}");
                let of_other = |task: &&String| {
                    let other = if host == "n1" { "n2 " } else { "n1 start_" };
                    task.starts_with(other) && !task.ends_with("write_hosts_block")
                };
                assert_eq!(tasks.iter().find(of_other), None, "{hop} {host}");
            }
            let inputs = next.upgrade_inputs(&there, BTreeSet::new()).await.unwrap();
            let add_ons = Plan::new(create_cluster::pipeline(&inputs).unwrap(), &there.facts).unwrap();
            let add_ons: Vec<_> = add_ons.changes().into_iter().map(|task| task.task).collect();
            assert!(add_ons.contains(&"apply_manifests".to_owned()), "{hop}: {add_ons:?}");
            before = next;
        }
    }
}

const NOTE: &str = "etcd: \"3.6.12\"\ncontainerd: \"2.3.2\"\n";

#[tokio::test]
async fn a_held_component_keeps_the_version_of_the_cluster_and_others_get_theirs() {
    let directory = tempfile::tempdir().unwrap();
    let before = testing::session(two_nodes(version("v1.36.4")), directory.path());
    let probed = running(&before, NOTE).await;
    let mut spec = two_nodes(version("v1.37.1"));
    // Also where the file wants another one.
    spec.components.etcd = Some("3.6.14".to_owned());
    let session = testing::session(spec, directory.path());
    let steps = async |held: &[Component]| {
        let session = session.hold(&probed, held).unwrap();
        let inputs = session.create_inputs(&probed).await.unwrap();
        (inputs.versions.of(Component::Etcd), session.hops(&probed).await.unwrap().components)
    };
    let (etcd, components) = steps(&[]).await;
    assert_eq!(etcd, "3.6.14");
    assert_eq!(components, ["etcd 3.6.12 -> 3.6.14", "containerd 2.3.2 -> 2.3.4"]);
    let (etcd, components) = steps(&[Component::Etcd]).await;
    assert_eq!((etcd.as_str(), &components[..]), ("3.6.12", &["containerd 2.3.2 -> 2.3.4".to_owned()][..]));
    let held = session.hold(&probed, &[Component::Etcd]).unwrap();
    let (tasks, errors) = turn(&held, &probed, "n1").await;
    assert!(errors.is_empty() && tasks.contains(&"n1 start_kubelet".to_owned()), "{errors:?} {tasks:?}");

    let silent = running(&before, "").await;
    let error = session.hold(&silent, &[Component::Etcd]).map(drop).unwrap_err().to_string();
    assert!(error.contains("etcd cannot be held"), "{error}");
}

#[tokio::test]
async fn a_component_gets_another_version_in_a_turn_and_an_older_minor_version_never() {
    let directory = tempfile::tempdir().unwrap();
    let before = testing::session(two_nodes(version("v1.36.4")), directory.path());
    let probed = running(&before, NOTE).await;
    for (etcd, refused) in [("3.6.14", false), ("3.5.33", true)] {
        let mut spec = two_nodes(version("v1.36.4"));
        spec.components.etcd = Some(etcd.to_owned());
        let session = testing::session(spec, directory.path());
        let way = session.hops(&probed).await.unwrap();
        assert_eq!(way.hops, [way.from]);
        assert_eq!(way.components, [format!("etcd 3.6.12 -> {etcd}")]);
        let (tasks, errors) = turn(&session, &probed, "n1").await;
        let wanted = ["n1 drain_n1", "n1 start_etcd", "n1 uncordon_n1"].map(str::to_owned);
        assert!(in_order(&tasks, &wanted), "{tasks:#?}");
        let is_refused = errors.iter().any(|error| error.message.starts_with("the cluster has etcd 3.6.12"));
        assert_eq!((is_refused, errors.len()), (refused, usize::from(refused)), "{errors:?}");
    }
}

/// The versions of the command line are those that failed. `note` is for the previous version, or for the version that n1 got in
/// an earlier run.
#[tokio::test]
async fn hosts_are_put_back_to_what_the_cluster_had_but_for_etcd_whose_data_cannot_go_back() {
    let directory = tempfile::tempdir().unwrap();
    let old = "etcd: \"3.5.32\"\ncontainerd: \"2.3.2\"\n";
    let new = "etcd: \"3.6.14\"\ncontainerd: \"2.3.4\"\n";
    for (from, noted, note, members, pinned, wanted) in [
        ("v1.36.4", "v1.36.4", NOTE, &[][..], "3.6.14", ("3.6.12", "2.3.2")),
        ("v1.34.9", "v1.34.9", old, &[], "3.6.14", ("3.6.14", "2.3.2")),
        ("v1.34.9", "v1.34.9", old, &[], "3.5.33", ("3.5.32", "2.3.2")),
        // The note of n1 has the versions of after its turn; n2 has not had its own.
        ("v1.36.2", "v1.36.4", new, &["3.6.14", "3.6.12"], "3.6.14", ("3.6.12", "2.3.4")),
        ("v1.36.4", "v1.37.1", new, &["3.6.14", "3.6.9"], "3.6.14", ("3.6.9", "2.3.4")),
        ("v1.34.9", "v1.35.0", new, &["3.6.14", "3.5.32"], "3.6.14", ("3.6.14", "2.3.4")),
        // A killed run has replaced etcd and nothing else.
        ("v1.36.4", "v1.36.4", NOTE, &["3.6.14"], "3.6.14", ("3.6.12", "2.3.2")),
    ] {
        let before = testing::session(two_nodes(version(from)), directory.path());
        let mut probed = running(&before, "").await;
        let note = format!("kubernetes: \"{noted}\"\n{note}");
        probed.facts.get_mut("n1").unwrap().reply(&RECORDED, note);
        let mut spec = two_nodes(version(from));
        spec.kubernetes.version.minor += 1;
        spec.components.etcd = Some(pinned.to_owned());
        spec.components.containerd = Some("2.3.4".to_owned());
        let next = testing::session(spec, directory.path());
        let etcd: Vec<_> = members.iter().map(|version| (*version).to_owned()).collect();
        let before = next.to_put_back(&probed, &etcd, version(from), &next).unwrap();
        let inputs = before.create_inputs(&probed).await.unwrap();
        let versions = (inputs.versions.of(Component::Etcd), inputs.versions.of(Component::Containerd));
        assert_eq!((versions.0.as_str(), versions.1.as_str()), wanted, "{from} {noted} {members:?} {pinned}");
        assert_eq!(inputs.versions.kubernetes, version(from));
    }
}

/// n1 has had its turn to v1.37.1, and n2 was rolled back. Only one of three sources may show the version of n1.
#[tokio::test]
async fn no_version_on_the_way_is_older_than_that_of_a_control_plane() {
    let directory = tempfile::tempdir().unwrap();
    let after = testing::session(two_nodes(version("v1.37.1")), directory.path());
    for (node, manifest, noted) in [
        ("v1.37.1", "v1.37.1", "v1.37.1"),
        ("v1.37.1", "v1.36.4", "v1.36.4"),
        ("v1.36.4", "v1.37.1", "v1.36.4"),
        ("v1.36.4", "v1.36.4", "v1.37.1"),
    ] {
        let nodes = format!("Node\tn1\tTrue\t{node}\t\t\t\nNode\tn2\tTrue\tv1.36.4\t\t\t\n");
        let mut probed = probed(&after, Some(&(nodes + ANSWERED))).await;
        let n1 = probed.facts.get_mut("n1").unwrap();
        n1.reply(&SETTINGS, format!("version\t{manifest}\n"));
        n1.reply(&RECORDED, format!("kubernetes: \"{noted}\"\n"));
        let hops = async |target: &str| {
            let session = testing::session(two_nodes(version(target)), directory.path());
            session.hops(&probed).await.map(|way| way.hops)
        };
        for target in ["v1.36.4", "v1.36.5"] {
            let error = hops(target).await.unwrap_err();
            let said = format!("the control plane n1 has Kubernetes v1.37.1, and {target} is older");
            assert_eq!(error.to_string(), said, "{node} {manifest} {noted}");
            assert!(error.hint().unwrap().contains("--with-kubernetes v1.37.1"), "{:?}", error.hint());
        }
        assert_eq!(hops("v1.37.1").await.unwrap(), [version("v1.37.1")]);
    }

    // The patch that is chosen for a minor version in between may be older, too.
    let nodes = "Node\tn1\tTrue\tv1.36.99\t\t\t\nNode\tn2\tTrue\tv1.35.0\t\t\t\n".to_owned();
    let probed = probed(&after, Some(&(nodes + ANSWERED))).await;
    let error = after.hops(&probed).await.map(drop).unwrap_err();
    assert!(
        error.to_string().starts_with("the control plane n1 has Kubernetes v1.36.99, and v1.36."),
        "{error}"
    );
    assert!(
        error.hint().unwrap().contains("by hand"),
        "what it names would be refused again: {:?}",
        error.hint()
    );
}

/// n1 has had its turn, or its turn failed after its note was written.
#[tokio::test]
async fn hosts_get_back_the_containerd_of_before_although_a_note_says_a_newer_one() {
    let directory = tempfile::tempdir().unwrap();
    let mut spec = two_nodes(version("v1.31.0"));
    spec.components.containerd = Some("1.7.34".to_owned());
    let before = testing::session(spec, directory.path());
    let mut probed = running(&before, "containerd: \"2.3.4\"\n").await;
    for name in ["n1", "n2"] {
        let names = BTreeSet::from([name.to_owned()]);
        let (_, errors) = turn(&before, &probed, name).await;
        assert!(errors[0].message.starts_with("the cluster has containerd 2.3.4"), "{errors:?}");
        let facts = probed.facts.get_mut(name).unwrap();
        facts.files.insert(UPGRADING.into(), FileFact::default());
        let back = before.plan_put_back(&probed, names).await.unwrap();
        let errors = back.findings.iter().filter(|finding| finding.severity == Severity::Error);
        // Programs are not downloaded here.
        let errors: Vec<_> = errors.filter(|finding| !finding.message.contains("cannot reach")).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
    }
}

/// Only the mark shows a run that was killed after the drain of n2: everything has the previous versions.
#[tokio::test]
async fn a_create_ends_the_turn_that_an_upgrade_has_left_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let session = testing::session(two_nodes(version("v1.36.4")), directory.path());
    for is_left in [true, false] {
        let mut probed = running(&session, "").await;
        if is_left {
            let n2 = probed.facts.get_mut("n2").unwrap();
            n2.files.insert(UPGRADING.into(), FileFact::default());
        }
        let create = session.plan_create(&probed).await.unwrap();
        let status = session.status(&probed).await.unwrap();
        for (tasks, findings) in
            [(create.plan.changes(), create.findings), (status.drift.clone(), status.findings.clone())]
        {
            let tasks: Vec<_> =
                tasks.into_iter().map(|task| format!("{} {}", task.host, task.task)).collect();
            let end = ["n2 start_kubelet", "n2 uncordon_n2", "n2 end_turn_n2"].map(str::to_owned);
            assert_eq!(in_order(&tasks, &end), is_left, "{tasks:#?}");
            let is_said =
                |finding: &Finding| finding.message.starts_with("its turn in an upgrade is not finished");
            let said: Vec<_> = findings.iter().filter(|finding| is_said(finding)).collect();
            assert_eq!(said.len(), usize::from(is_left), "{findings:?}");
            assert!(said.iter().all(|finding| finding.host.as_deref() == Some("n2")), "{said:?}");
        }
        // In an upgrade it ends once, behind its changes.
        let (tasks, errors) = turn(&session, &probed, "n2").await;
        let ends = tasks.iter().filter(|task| *task == "n2 uncordon_n2").count();
        assert_eq!((ends, errors.len()), (1, 0), "{tasks:#?} {errors:?}");
    }
}

#[tokio::test]
async fn a_member_of_etcd_that_is_sick_is_named_unless_its_own_turn_has_begun() {
    let directory = tempfile::tempdir().unwrap();
    let session = testing::session(with_etcd_on("n1, n3"), directory.path());
    let how = Drain { force: false, timeout: Duration::from_mins(1) };
    for (answer, is_begun, named) in [
        (Some("yes"), false, false),
        (Some("no"), false, true),
        (Some("no"), true, false),
        (None, false, true),
    ] {
        let mut probed = probed(&session, Some(ANSWERED)).await;
        probed.facts.get_mut("n1").unwrap().reply(&HEALTHY, "yes");
        let n3 = probed.facts.get_mut("n3").unwrap();
        match answer {
            Some(answer) => n3.reply(&HEALTHY, answer),
            None => n3.time_out(&HEALTHY),
        }
        if is_begun {
            n3.files.insert(UPGRADING.into(), FileFact::default());
        }
        let turn = session.plan_turn(&probed, BTreeSet::from(["n1".to_owned()]), &how).await.unwrap();
        let is_about = |finding: &&Finding| finding.message.contains("member of etcd is not healthy");
        let sick: Vec<_> = turn.findings.iter().filter(is_about).collect();
        let is_n3 = |finding: &&Finding| {
            finding.severity == Severity::Warning && finding.host.as_deref() == Some("n3")
        };
        assert_eq!((sick.len(), sick.iter().all(is_n3)), (usize::from(named), true), "{answer:?} {sick:?}");
    }
}

/// The API is queried at n1, which the upgrade has not reached.
#[tokio::test]
async fn a_create_leads_no_control_plane_back_that_an_upgrade_has_reached() {
    let directory = tempfile::tempdir().unwrap();
    let mut spec = with_etcd_on("n1");
    spec.kubernetes.version = version("v1.36.4");
    let session = testing::session(spec, directory.path());
    for (there, refused) in [("v1.36.4", false), ("v1.37.1", true)] {
        let mut probed = probed(&session, Some(ANSWERED)).await;
        probed.facts.get_mut("n3").unwrap().reply(&SETTINGS, format!("version\t{there}\n"));
        let create = session.plan_create(&probed).await.unwrap();
        let said = "the cluster's version is v1.37.1, but the file sets v1.36.4";
        assert_eq!(create.findings.iter().any(|finding| finding.message == said), refused, "{there}");
    }
}

/// n1 got the new version in a run that ended early; n2 is in the middle of its turn.
#[tokio::test]
async fn what_has_the_new_version_before_its_turn_keeps_it() {
    let directory = tempfile::tempdir().unwrap();
    let session = testing::session(two_nodes(version("v1.37.1")), directory.path());
    let nodes = "Node\tn1\tTrue\tv1.37.1\t\t\t\nNode\tn2\tTrue\tv1.37.1\t\t\t\n".to_owned();
    let mut probed = probed(&session, Some(&(nodes + ANSWERED))).await;
    probed.facts.get_mut("n2").unwrap().files.insert(UPGRADING.into(), FileFact::default());
    assert_eq!(session.with_version(&probed).await.unwrap(), BTreeSet::from(["n1".to_owned()]));
}
