//! Hosts that did not answer. Their work is left to a later run; a run that cannot do without them does not start.

use std::collections::BTreeMap;

use kk_config::{Host, Role};
use kk_engine::{Failure, Finding};

use crate::{
    base::findings::Findings,
    model::{cluster::Presence, inputs::Inputs},
};

/// The hosts without an answer that prevent the run from starting, with the reason why they did not answer and why they are
/// needed.
pub(crate) fn needed(inputs: &Inputs) -> BTreeMap<String, Failure> {
    let needed = |(host, failure): (&Host, &Failure)| {
        let hint = Some(after_its_hint(failure, &why_needed(inputs, host)?));
        Some((host.name.clone(), Failure { hint, ..failure.clone() }))
    };
    absent(inputs).into_iter().filter_map(needed).collect()
}

pub(super) fn check(inputs: &Inputs, found: &mut Findings) {
    for (host, failure) in absent(inputs) {
        if why_needed(inputs, host).is_none() {
            is_left(host, failure, found);
        }
    }
}

/// A delete needs no host to clean another one.
pub(crate) fn left_by_delete(inputs: &Inputs) -> Vec<Finding> {
    let mut found = Findings::default();
    for (host, failure) in absent(inputs) {
        is_left(host, failure, &mut found);
    }
    found.0
}

fn is_left(host: &Host, failure: &Failure, found: &mut Findings) {
    found.warning(
        host,
        format!("it did not answer: {}", failure.cause),
        after_its_hint(failure, "it is not changed: run again when it answers"),
    );
}

/// The remedy for the host itself precedes this hint.
fn after_its_hint(failure: &Failure, hint: &str) -> String {
    failure.hint.iter().map(String::as_str).chain([hint]).collect::<Vec<_>>().join("; ")
}

fn absent<'a>(inputs: &Inputs<'a>) -> Vec<(&'a Host, &'a Failure)> {
    let failure = |host: &'a Host| match inputs.presence.get(host.name.as_str())? {
        Presence::Absent(failure) => Some((host, *failure)),
        Presence::Probed(_) => None,
    };
    inputs.spec.hosts.iter().filter_map(failure).collect()
}

/// Why the run needs a host, and what to do.
fn why_needed(inputs: &Inputs, host: &Host) -> Option<String> {
    let is_etcd = host.has_role(&Role::Etcd);
    if !inputs.is_initialised() {
        // The cluster may exist already, on this very host. For a new cluster, a typing error should be reported before the first
        // change.
        return Some(
            "a new cluster needs all its hosts: make this one reachable, or remove it from the file"
                .to_owned(),
        );
    }
    let all = inputs.spec.etcd_hosts();
    let (members, there) = (all.len(), all.iter().filter(|host| inputs.facts(host).is_some()).count());
    let quorum = members / 2 + 1;
    (is_etcd && there < quorum)
        .then(|| format!("etcd needs {quorum} of its {members} members, but only {there} answered"))
}

#[cfg(test)]
mod tests {
    use kk_config::Spec;
    use kk_engine::{Plan, Severity};

    use super::*;
    use crate::{
        base::{
            cluster_state::{API, INITIALISED},
            probed::Probed,
        },
        commands::{create_cluster, precheck::precheck},
        testing,
    };

    /// Three control planes with etcd, and a worker.
    fn spec() -> Spec {
        let host = |n| format!("  - {{name: n{n}, address: 192.0.2.{n}}}\n");
        let hosts = (1..5).map(host).collect::<Vec<_>>().concat();
        testing::spec(&format!(
            "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: t}}\nspec:\n  hosts:\n{hosts}  \
             roleGroups: {{etcd: [n1, n2, n3], control-plane: [n1, n2, n3], worker: [n4]}}\n  controlPlaneEndpoint: {{address: 192.0.2.1}}\n"
        ))
    }

    /// The hosts, of which these did not answer.
    fn without(spec: &Spec, absent: &[&str], initialised: bool) -> Probed {
        let mut probed = testing::fresh(spec);
        for host in spec.control_planes() {
            probed
                .facts
                .get_mut(&host.name)
                .unwrap()
                .reply(&INITIALISED, if initialised { "yes" } else { "no" });
        }
        for name in absent {
            probed.facts.remove(*name);
            probed.failures.insert((*name).to_owned(), Failure::new("no route to host"));
        }
        probed
    }

    async fn judged(absent: &[&str], initialised: bool) -> (Vec<String>, Vec<Finding>) {
        let (spec, directory) = (spec(), tempfile::tempdir().unwrap());
        let probed = without(&spec, absent, initialised);
        let session = testing::session(spec.clone(), directory.path());
        let inputs = session.create_inputs(&probed).await.unwrap();
        let found = precheck(&create_cluster::capabilities(&spec), &inputs);
        let found = found.into_iter().filter(|finding| finding.message.contains("did not answer")).collect();
        (needed(&inputs).into_keys().collect(), found)
    }

    #[tokio::test]
    async fn hosts_that_others_can_do_without_are_left() {
        for (absent, initialised) in
            [(&["n4"][..], true), (&["n3"], true), (&["n1"], true), (&["n1", "n4"], true)]
        {
            let (needed, found) = judged(absent, initialised).await;
            assert_eq!(needed, [""; 0], "{absent:?}");
            let left: Vec<_> = found.iter().filter_map(|finding| finding.host.as_deref()).collect();
            assert_eq!(left, absent, "{absent:?}");
            assert!(found.iter().all(|finding| finding.severity == Severity::Warning));
        }
    }

    #[tokio::test]
    async fn nothing_begins_without_a_quorum_or_with_part_of_a_new_cluster() {
        for (absent, initialised) in
            [(&["n1", "n2"][..], true), (&["n2"], false), (&["n4"], false), (&["n1", "n2", "n3"], true)]
        {
            let (needed, found) = judged(absent, initialised).await;
            assert_eq!(needed, absent, "{absent:?}");
            assert_eq!(found, []);
        }
    }

    /// Without a load balancer, the name of the API resolves to a control plane, which may be the host without power.
    #[tokio::test]
    async fn the_name_of_the_api_leads_to_a_control_plane_that_answers() {
        let (spec, directory) = (spec(), tempfile::tempdir().unwrap());
        let session = testing::session(spec.clone(), directory.path());
        for (absent, answers, leads_to) in [
            ("n1", true, "192.0.2.2"),
            ("n1", false, "192.0.2.2"),
            ("n3", true, "192.0.2.1"),
            ("n3", false, "192.0.2.1"),
        ] {
            let mut probed = without(&spec, &[absent], true);
            for facts in probed.facts.values_mut() {
                if answers { facts.reply(&API, "end\n") } else { facts.time_out(&API) }
            }
            let inputs = session.create_inputs(&probed).await.unwrap();
            assert_eq!(inputs.endpoint().address().unwrap().to_string(), leads_to, "{absent}");
        }
    }

    #[tokio::test]
    async fn a_delete_keeps_the_certificates_until_every_host_is_done() {
        let (spec, directory) = (spec(), tempfile::tempdir().unwrap());
        let session = testing::session(spec.clone(), directory.path());
        session.create_inputs(&testing::fresh(&spec)).await.unwrap().pki.save().unwrap();
        for (absent, removes) in [(&[][..], true), (&["n4"], false)] {
            let mut probed = without(&spec, absent, true);
            for facts in probed.facts.values_mut() {
                facts.owned = vec!["made\t/etc/systemd/system/kubelet.service"].into();
            }
            let delete = session.plan_delete(&probed).unwrap();
            assert_eq!(delete.findings.len(), absent.len());
            let removed = delete.plan.changes().iter().any(|task| task.task == "remove_certificates");
            assert_eq!(removed, removes);
        }
    }

    /// The plan for hosts that answered names no other host, and waits for none.
    #[tokio::test]
    async fn the_plan_is_for_those_that_answered() {
        for absent in ["n1", "n3", "n4"] {
            let (spec, directory) = (spec(), tempfile::tempdir().unwrap());
            let probed = without(&spec, &[absent], true);
            let session = testing::session(spec, directory.path());
            let inputs = session.create_inputs(&probed).await.unwrap();
            let plan = Plan::new(create_cluster::pipeline(&inputs).unwrap(), &probed.facts).unwrap();
            let planned: Vec<String> = plan.changes().into_iter().map(|task| task.host).collect();
            assert!(!planned.is_empty() && !planned.iter().any(|host| host == absent), "{absent}");
        }
    }
}
