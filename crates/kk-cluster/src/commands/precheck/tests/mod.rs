//! A host without problems, and every kind of problem.

mod clocks;
mod foreign;
mod host;
mod immutable;
mod unanswered;

use std::net::Ipv4Addr;

use kk_config::{KubeVersion, Spec};
use kk_engine::{Facts, Severity};

use super::precheck;
use crate::{commands::create_cluster::capabilities, testing};

fn spec() -> Spec {
    Spec::all_in_one("node1", Ipv4Addr::new(192, 168, 0, 1), KubeVersion::default()).unwrap()
}

/// A host without findings.
fn well() -> Facts {
    let mut facts = testing::fresh(&spec()).facts.remove("node1").unwrap();
    facts.sysctls.insert("net.ipv4.ip_forward".into(), "1".into());
    facts
}

async fn findings(facts: Facts) -> Vec<(Severity, String)> {
    findings_of(&spec(), facts).await
}

async fn findings_of(spec: &Spec, facts: Facts) -> Vec<(Severity, String)> {
    findings_with(spec, |_| facts).await
}

/// `facts` receives the SHA-256 of the CA of etcd on the control machine.
async fn findings_with(spec: &Spec, facts: impl FnOnce(&str) -> Facts) -> Vec<(Severity, String)> {
    let directory = tempfile::tempdir().unwrap();
    let session = testing::session(spec.clone(), directory.path());
    let fresh = testing::fresh(spec);
    let mut inputs = session.create_inputs(&fresh).await.unwrap();
    let facts = facts(&inputs.pki.ca_sum());
    inputs.presence.insert("node1", crate::model::cluster::Presence::Probed(&facts));
    inputs.state = crate::model::cluster::api_host(spec.control_planes(), &inputs.presence).1;
    let findings = precheck(&capabilities(spec), &inputs);
    findings.into_iter().map(|finding| (finding.severity, finding.message)).collect()
}

#[tokio::test]
async fn nothing_is_said_of_a_host_that_is_well() {
    assert_eq!(findings(well()).await, []);
}

#[tokio::test]
async fn all_troubles_are_said_at_once_errors_first() {
    let facts = Facts { cpus: 1, swaps: vec!["/swap".into()], systemd: false, ..well() };
    let found = findings(facts).await;
    assert_eq!(found.len(), 3);
    assert!(found.is_sorted_by_key(|(severity, _)| *severity));
}
