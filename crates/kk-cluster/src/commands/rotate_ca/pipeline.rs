//! `kk certs rotate-ca`.

use std::sync::Arc;

use kk_engine::Pipeline;

use crate::commands::running_cluster;
use crate::{
    base::{findings::Findings, host_layout::CLUSTER_CA},
    capabilities::{
        ca_rotation::{self, Authorities, Restarts, Round},
        etcd,
    },
    model::inputs::Inputs,
};

/// Flags by which a user may have replaced files that a rotation replaces.
const OF_CAS: [&str; 4] =
    ["client-ca-file", "root-ca-file", "requestheader-client-ca-file", "cluster-signing-"];

/// The blockers for a rotation, which also apply when a rotation is resumed.
pub(crate) fn findings(inputs: &Inputs, authorities: &Authorities, found: &mut Findings) {
    let has_begun = ca_rotation::has_begun(inputs, authorities);
    // Only the rotation itself can finish the work of a killed run, so problems do not block a rotation that has begun.
    if !has_begun {
        running_cluster::findings(inputs, found);
        health(inputs, found);
    }
    if ca_rotation::has_begun_elsewhere(inputs, authorities) {
        found.error(
            None,
            "a rotation has begun, but the control machine lacks some or all of its new CAs",
            format!(
                "run on the machine where it has begun, or copy {} from there",
                inputs.directory.join("pki").display()
            ),
        );
    }
    for host in inputs.spec.hosts.iter().filter(|host| inputs.facts(host).is_none()) {
        found.error(
            host,
            "it does not answer, and would not know the new CAs",
            "repair it; if it is permanently lost, remove it from the cluster before a rotation (kk delete \
             node --gone), or from the file during one",
        );
    }
    for (host, facts) in inputs.answered() {
        let Some(identity) = facts.owned.identity() else {
            found.error(host, "it is not in the cluster", "kk create cluster joins it");
            continue;
        };
        let is_ours = identity.ca_sha256 == inputs.pki.ca_sum() || authorities.knows(&identity.ca_sha256);
        if identity.cluster != inputs.spec.name || !is_ours {
            found.error(
                host,
                format!("it belongs to the cluster {} with another CA of etcd", identity.cluster),
                format!(
                    "run on the machine where the rotation has begun, or copy {} from there",
                    inputs.directory.join("pki").display()
                ),
            );
        }
    }
    let kubernetes = &inputs.spec.kubernetes;
    for flag in kubernetes.apiserver_args.keys().chain(kubernetes.controller_manager_args.keys()) {
        if OF_CAS.iter().any(|of_ca| flag.trim_start_matches('-').starts_with(of_ca)) {
            found.error(
                None,
                format!("the file sets --{flag}: kk cannot know which CA each component trusts then"),
                "first remove it and run kk create cluster",
            );
        }
    }
    let old = inputs.facts(inputs.api_host).and_then(|facts| facts.files.get(CLUSTER_CA));
    if !has_begun && old.is_some_and(|old| old.sha256 == authorities.cluster_sum()) {
        found.error(
            None,
            "the specified CA is already the CA of the cluster",
            "specify another one, or omit --ca-dir",
        );
    }
    found.warning(
        None,
        "kubeconfigs and client certificates that users have become invalid with the old CA",
        "issue new ones afterwards; kk renews the files on the hosts and on the control machine",
    );
}

/// A rotation makes one component after the other unavailable, so everything must be healthy before.
fn health(inputs: &Inputs, found: &mut Findings) {
    for (host, _) in
        inputs.etcd_hosts().into_iter().filter(|(_, facts)| etcd::is_healthy(facts) != Some(true))
    {
        found.error(
            host,
            "its member of etcd is not healthy",
            "kk create cluster repairs it; see journalctl -u etcd on the host",
        );
    }
    for (host, _) in inputs.nodes().into_iter().filter(|(host, _)| !inputs.is_ready(host)) {
        found.error(
            host,
            "its node is not Ready",
            "kk create cluster repairs it; see journalctl -u kubelet on the host",
        );
    }
}

pub(crate) fn pipeline(
    inputs: &Inputs,
    authorities: &Arc<Authorities>,
    round: Round,
    restarts: Restarts,
) -> Pipeline {
    Pipeline::new(vec![ca_rotation::module(inputs, authorities, round, restarts)])
}

pub(crate) fn clean_up(authorities: &Authorities) -> Pipeline {
    Pipeline::new(vec![ca_rotation::clean_up(authorities)])
}

#[cfg(test)]
mod tests {
    use kk_engine::{Facts, Plan, Severity};

    use super::*;
    use crate::{base::questions::ca_rotation::STAGE, testing};

    /// The error messages and the number of remaining rounds for a running cluster whose hosts give these answers. `saved`: the
    /// new CAs are on the control machine.
    async fn asked(saved: bool, spoil: impl Fn(&str, &mut Facts)) -> (Vec<String>, usize) {
        let (spec, directory) = (testing::sample("three-nodes.yaml"), tempfile::tempdir().unwrap());
        let session = testing::session(spec.clone(), directory.path());
        let authorities = session.new_authorities(None).unwrap();
        if saved {
            authorities.save().unwrap();
        }
        let mut probed = testing::fresh(&spec);
        let fresh = session.create_inputs(&probed).await.unwrap();
        fresh.pki.save().unwrap();
        let record = format!("cluster\t{}\t{}\t-", spec.name, fresh.pki.ca_sum());
        drop(fresh);
        for host in &spec.hosts {
            let facts = probed.facts.get_mut(&host.name).unwrap();
            facts.owned = vec![record.clone()].into();
            facts.reply(&STAGE, "none");
            spoil(&host.name, facts);
        }
        let rotation = session.rotation(&probed, &authorities).await.unwrap();
        let errors = rotation.findings.into_iter().filter(|one| one.severity == Severity::Error);
        (errors.map(|one| one.message).collect(), rotation.rounds.len())
    }

    #[tokio::test]
    async fn a_rotation_goes_on_after_the_last_round_that_has_ended_everywhere() {
        for (first, others, left) in
            [("0", "none", 3), ("1", "0", 2), ("1", "1", 2), ("2", "1", 1), ("2", "none", 1)]
        {
            let reply = |name: &str, facts: &mut Facts| {
                facts.reply(&STAGE, if name == "node1" { first } else { others });
            };
            assert_eq!(asked(true, reply).await, (Vec::new(), left), "{first} {others}");
        }
    }

    #[tokio::test]
    async fn what_has_begun_elsewhere_or_is_of_another_cluster_is_refused() {
        let (said, _) = asked(false, |_, facts| facts.reply(&STAGE, "1")).await;
        assert!(said[0].contains("the control machine lacks some or all of its new CAs"), "{said:?}");
        let (said, _) = asked(true, |_, facts| {
            facts.reply(&STAGE, "1");
            facts.owned = vec!["cluster\tanother\tsum\t-".to_owned()].into();
        })
        .await;
        assert!(said.iter().all(|one| one.contains("belongs to the cluster another")), "{said:?}");
        let (said, _) = asked(true, |_, _| {}).await;
        assert!(said.iter().any(|one| one.contains("there is no running cluster")), "{said:?}");
    }

    #[tokio::test]
    async fn the_slots_of_every_round_have_providers() {
        let (spec, directory) = (testing::sample("three-nodes.yaml"), tempfile::tempdir().unwrap());
        let session = testing::session(spec.clone(), directory.path());
        let (probed, authorities) = (testing::fresh(&spec), session.new_authorities(None).unwrap());
        let inputs = session.create_inputs(&probed).await.unwrap();
        for round in Round::ALL {
            let plan =
                Plan::new(pipeline(&inputs, &authorities, round, Restarts::All), &probed.facts).unwrap();
            assert!(!plan.changes().is_empty());
        }
    }
}
