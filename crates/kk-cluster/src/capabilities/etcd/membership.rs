//! Determines the members of the etcd cluster. Not every etcd host of the file is a member, because members are added one after
//! the other.

use kk_config::{Host, Role};
use kk_engine::Facts;

use super::{
    check::DATA,
    files::{JOINED, JOINED_TEXT},
    health,
    identity::stranger,
};
use crate::model::{cluster::Cluster, inputs::Inputs};

/// Whether the member of a host has a vote. A learner has no vote: while it joins, its file contains the members with which it
/// starts. etcd that another tool has installed does not have this file, but has data.
pub(super) fn has_vote(facts: &Facts) -> bool {
    health::is_healthy(facts)
        || match facts.files.get(JOINED) {
            Some(file) => file.sha256 == kk_util::sha256(JOINED_TEXT.as_bytes()),
            None => facts.answer(&DATA).answered() == Some(true),
        }
}

/// Hosts of the file whose members count for the quorum, including hosts that this command leaves as they are. A host that does
/// not answer counts as a member; a host whose data belongs to no member does not.
fn members<'a>(inputs: &Inputs<'a>) -> Vec<&'a Host> {
    let has_vote = |facts| has_vote(facts) && stranger(inputs, facts).is_none();
    let is_member = |host: &&Host| inputs.facts(host).is_none_or(has_vote);
    inputs.spec.etcd_hosts().into_iter().filter(is_member).collect()
}

/// Hosts whose members were healthy at the time of the probe.
pub(super) fn healthy<'a>(inputs: &Inputs<'a>) -> Vec<&'a Host> {
    let is_healthy = |host: &&Host| inputs.facts(host).is_some_and(health::is_healthy);
    inputs.spec.etcd_hosts().into_iter().filter(is_healthy).collect()
}

/// Whether the healthy members are a majority, which is needed to change the member list.
pub(super) fn has_quorum(inputs: &Inputs) -> bool {
    healthy(inputs).len() * 2 > members(inputs).len()
}

/// Whether most members run, so that changes must be made one member after the other.
pub(super) fn runs(inputs: &Inputs) -> bool {
    let members = members(inputs);
    let runs = |host: &&&Host| inputs.facts(host).is_some_and(super::is_active);
    members.iter().filter(runs).count() * 2 > members.len()
}

/// Whether the host has the etcd role and its member is to be added to a running cluster.
pub(crate) fn is_new(cluster: &Cluster, host: &Host) -> bool {
    host.has_role(&Role::Etcd) && cluster.facts(host).is_some_and(|facts| !has_vote(facts))
}
