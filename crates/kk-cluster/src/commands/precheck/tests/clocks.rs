//! Clocks that differ.

use kk_engine::{Facts, Severity};

use super::{findings, well};
use crate::{
    commands::{create_cluster::capabilities, precheck::precheck},
    testing,
};

#[tokio::test]
async fn a_wrong_clock_of_this_machine_is_an_error() {
    for (skew, found) in [
        (9 * 60_000, None),
        (-11 * 60_000, Some("the control machine's clock is 660 s ahead of the hosts'")),
        (3_600_000, Some("the control machine's clock is 3600 s behind the hosts'")),
    ] {
        let found: Vec<_> = found.iter().map(|what| (Severity::Error, (*what).to_owned())).collect();
        assert_eq!(findings(Facts { clock_skew_ms: skew, ..well() }).await, found);
    }
}

#[tokio::test]
async fn clocks_are_judged_by_how_far_they_are_apart_for_sure() {
    let spec = testing::sample("three-nodes.yaml");
    for (skew, unsure, severity) in [
        (900, 0, None),
        (2_000, 0, Some(Severity::Warning)),
        (2_000, 1_500, None),
        (29_000, 0, Some(Severity::Warning)),
        (-31_000, 0, Some(Severity::Error)),
        (31_000, 2_000, Some(Severity::Warning)),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        let mut fresh = testing::fresh(&spec);
        let facts = fresh.facts.get_mut(&spec.hosts[2].name).unwrap();
        (facts.clock_skew_ms, facts.clock_uncertainty_ms) = (skew, unsure);
        let found = precheck(&capabilities(&spec), &session.create_inputs(&fresh).await.unwrap());
        assert_eq!(found.first().map(|finding| finding.severity), severity, "{skew} {unsure}");
    }
}
