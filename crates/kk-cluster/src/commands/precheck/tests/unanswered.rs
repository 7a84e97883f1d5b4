//! Questions without an answer from a host or from the API.

use kk_engine::{Facts, Severity, question::Reply};

use super::{findings, well};
use crate::{
    base::{
        cluster_state::{API, INITIALISED},
        questions::SETTINGS,
    },
    capabilities::os::{disable_swap::UNITS, firewall, write_hosts_block::REWRITTEN},
};

#[tokio::test]
async fn a_question_without_an_answer_is_never_a_no() {
    type Spoil = fn(&mut Facts);
    let cases: &[(Spoil, &str)] = &[
        (
            |facts| facts.time_out(&INITIALISED),
            "the host did not report whether its control plane was initialised: no answer within 60 s",
        ),
        (
            |facts| facts.time_out(&SETTINGS),
            "the host did not report the settings of its control plane: no answer within 60 s",
        ),
        (
            |facts| facts.time_out(&crate::capabilities::etcd::DATA),
            "the host did not report whether etcd has data on it: no answer within 60 s",
        ),
        (
            |facts| facts.time_out(&crate::capabilities::etcd::ENVIRONMENT),
            "the host did not report how its etcd is configured: no answer within 60 s",
        ),
        (
            |facts| facts.time_out(&crate::capabilities::os::ownership::identity::TOKEN),
            "the host did not report which cluster its etcd belongs to: no answer within 60 s",
        ),
        (
            |facts| facts.time_out(&crate::capabilities::os::NODE_NAME),
            "the host did not report the name of its node: no answer within 60 s",
        ),
        (
            |facts| facts.time_out(&crate::capabilities::runtime::ROOT),
            "the host did not report where its containerd keeps its data: no answer within 60 s",
        ),
        (
            |facts| facts.time_out(&crate::capabilities::runtime::DATA),
            "the host did not report whether a containerd has data on it: no answer within 60 s",
        ),
        (
            |facts| facts.time_out(&crate::base::questions::CGROUP_DRIVER),
            "the host did not report the cgroup driver of its kubelet: no answer within 60 s",
        ),
        (
            |facts| facts.time_out(&firewall::ACTIVE),
            "the host did not report which firewalls are active: no answer within 60 s",
        ),
        (
            |facts| facts.time_out(&UNITS),
            "the host did not report which units enable swap: no answer within 60 s",
        ),
        (
            |facts| facts.time_out(&REWRITTEN),
            "the host did not report whether cloud-init writes its /etc/hosts: no answer within 60 s",
        ),
    ];
    for (spoil, what) in cases {
        let mut facts = well();
        spoil(&mut facts);
        assert_eq!(findings(facts).await, [(Severity::Error, (*what).to_owned())]);
    }
}

#[tokio::test]
async fn an_api_that_serves_an_empty_etcd_is_an_error_and_one_that_is_silent_is_said() {
    let mut facts = well();
    facts.reply(&INITIALISED, "yes");
    facts.reply(&API, "end\n");
    let what = "the API answers and has no data: etcd serves an empty cluster";
    assert_eq!(findings(facts.clone()).await, [(Severity::Error, what.to_owned())]);
    facts.time_out(&API);
    let what = "the API does not answer: no answer within 75 s";
    assert_eq!(findings(facts.clone()).await, [(Severity::Adapted, what.to_owned())]);
    let refusal = "Error from server (Forbidden): nodes is forbidden: User \"kubernetes-admin\" cannot list resource \"nodes\"";
    let reply = Reply { code: 1, stderr: refusal.to_owned(), ..Reply::default() };
    facts.replies.insert("api".to_owned(), reply);
    let found = findings(facts).await;
    let [(Severity::Adapted, what)] = &found[..] else { panic!("{found:?}") };
    assert!(
        what.starts_with("the API refuses the account of administrators: ") && what.contains(refusal),
        "{what}"
    );
}
