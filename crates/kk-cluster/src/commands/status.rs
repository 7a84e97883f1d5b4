//! Status of a cluster: nodes, members of etcd, certificates, and the changes that a create would make. It is plain data from one
//! probe; nothing is changed.

use std::collections::BTreeSet;

use kk_config::Host;
use kk_engine::{Finding, PlannedTask, Severity};
use serde::Serialize;
use time::OffsetDateTime;

use crate::{
    base::{
        certificates::{self, Age, Validity},
        pki::{ETCD_CLIENT, ETCD_MEMBER},
    },
    capabilities::{
        control_plane::parts,
        etcd,
        kubesphere::{self, KubeSphereStatus},
        verify::{is_connected, is_silent},
    },
    model::inputs::Inputs,
};

/// The status of a cluster.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The name of the cluster.
    pub cluster: String,
    /// Whether a control plane answers.
    pub api_answers: bool,
    /// The nodes of the file.
    pub nodes: Vec<NodeStatus>,
    /// The members of etcd.
    pub etcd: Vec<MemberStatus>,
    /// The kinds of etcd's alarms: `NOSPACE` while it refuses writes because its database is full.
    pub etcd_alarms: BTreeSet<String>,
    /// Certificates by expiry, the earliest first.
    pub certificates: Vec<CertificateStatus>,
    /// The status that ks-installer reports, if the file requests KubeSphere.
    pub kubesphere: Option<KubeSphereStatus>,
    /// Problems and warnings that a create would show.
    pub findings: Vec<Finding>,
    /// The changes that a create would make, without checks that change nothing.
    pub drift: Vec<PlannedTask>,
}

/// A node of the file.
#[derive(Clone, Debug, Serialize)]
pub struct NodeStatus {
    /// Its name.
    pub name: String,
    /// Its address inside the cluster.
    pub address: String,
    /// Its roles, such as `control-plane`.
    pub roles: Vec<String>,
    /// Its state.
    pub state: NodeState,
    /// The version of the kubelet in the API: `v1.36.0`.
    pub version: Option<String>,
}

/// The state of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    /// The API shows it as Ready, based on a report of the running kubelet.
    Ready,
    /// The API does not show it as Ready, a component of its control plane is not ready, or its pods reach no Service or no other
    /// node.
    NotReady,
    /// It is not in the cluster.
    Missing,
    /// The API did not answer, or the node did not report whether its pods reach others.
    Unknown,
    /// The host did not answer.
    Silent,
}

/// A member of etcd.
#[derive(Clone, Debug, Serialize)]
pub struct MemberStatus {
    /// Its host.
    pub host: String,
    /// Whether it has a leader and commits. `None` if its host did not answer.
    pub healthy: Option<bool>,
}

/// A certificate, or the kubeconfig that contains it.
#[derive(Clone, Debug, Serialize)]
pub struct CertificateStatus {
    /// The host of the certificate.
    pub host: String,
    /// Its name in kubeadm: `apiserver`, `admin.conf`. Certificates of etcd are named `etcd-member` and `etcd-client`.
    pub name: String,
    /// The day of its expiry: `2027-01-20`. `None` if it cannot be read.
    pub ends: Option<String>,
    /// Days until its expiry; negative if it has expired.
    pub days: Option<i64>,
    /// Whether a create renews it.
    pub due: bool,
}

impl Status {
    /// Whether nothing has to be done, for monitoring.
    pub fn is_well(&self) -> bool {
        self.api_answers
            && self.nodes.iter().all(|node| node.state == NodeState::Ready)
            && self.etcd.iter().all(|member| member.healthy == Some(true))
            && self.etcd_alarms.is_empty()
            && self.certificates.iter().all(|certificate| certificate.days.is_some_and(|days| days >= 0))
            && self.findings.iter().all(|finding| finding.severity != Severity::Error)
            && self.kubesphere.iter().all(|kubesphere| kubesphere.phase == "Ready")
            && self.drift.is_empty()
    }
}

/// Builds the status from the facts.
pub(crate) fn of(inputs: &Inputs, findings: Vec<Finding>, drift: Vec<PlannedTask>) -> Status {
    Status {
        cluster: inputs.spec.name.clone(),
        api_answers: inputs.state.answered && inputs.is_initialised(),
        nodes: inputs.spec.nodes().into_iter().map(|host| node(inputs, host)).collect(),
        etcd: inputs.spec.etcd_hosts().into_iter().map(|host| member(inputs, host)).collect(),
        etcd_alarms: etcd::alarms(inputs),
        certificates: certificates(inputs),
        kubesphere: kubesphere::status(inputs),
        findings: findings.into_iter().filter(|finding| finding.severity != Severity::Adapted).collect(),
        drift,
    }
}

fn node(inputs: &Inputs, host: &Host) -> NodeStatus {
    let node = inputs.state.nodes.get(&host.name);
    let state = match node {
        _ if inputs.facts(host).is_none() => NodeState::Silent,
        _ if !inputs.state.answered => NodeState::Unknown,
        None => NodeState::Missing,
        Some(_) if inputs.is_ready(host) && has_all_parts(inputs, host) && is_connected(inputs, host) => {
            NodeState::Ready
        }
        Some(_) if is_silent(inputs, host).is_some() => NodeState::Unknown,
        Some(_) => NodeState::NotReady,
    };
    NodeStatus {
        name: host.name.clone(),
        address: host.internal_address.to_string(),
        roles: host.roles.iter().map(ToString::to_string).collect(),
        state,
        version: node.map(|node| node.version.clone()),
    }
}

fn has_all_parts(inputs: &Inputs, host: &Host) -> bool {
    inputs.facts(host).is_none_or(|facts| parts::not_ready(inputs, host, facts).is_empty())
}

fn member(inputs: &Inputs, host: &Host) -> MemberStatus {
    let healthy = inputs.facts(host).and_then(etcd::is_healthy);
    MemberStatus { host: host.name.clone(), healthy }
}

/// Certificates that a create never renews: kubelets renew their own, and CAs stay.
const OTHERS_RENEW: [&str; 3] = ["kubelet-client", "ca", "front-proxy-ca"];

/// Certificates by expiry, the earliest first.
pub(crate) fn certificates(inputs: &Inputs) -> Vec<CertificateStatus> {
    let now = OffsetDateTime::now_utc();
    let status = |host: &Host, name: String, validity: Option<Validity>| CertificateStatus {
        ends: validity.map(Validity::end_date),
        days: validity.map(|validity| validity.days_left(now)),
        due: !OTHERS_RENEW.contains(&name.as_str())
            && validity.is_none_or(|validity| matches!(validity.age(now), Age::Due | Age::Expired)),
        host: host.name.clone(),
        name,
    };
    let mut all = Vec::new();
    for (host, facts) in inputs.answered() {
        for (name, certificate) in certificates::of(facts) {
            all.push(status(host, name, certificate.validity));
        }
        // For etcd, the certificates that the control machine has saved are listed. If a host has others, a create replaces them.
        let (member, client) = (inputs.pki.saved_member(&host.name), inputs.pki.saved_client(&host.name));
        for (name, saved) in [(ETCD_MEMBER, member), (ETCD_CLIENT, client)] {
            all.extend(saved.map(|pem| status(host, name.into(), Validity::of_pem(pem.as_bytes()))));
        }
    }
    all.sort_by_key(|certificate| certificate.days);
    all
}

#[cfg(test)]
mod tests {
    use kk_engine::Facts;

    use super::*;
    use crate::{
        base::{
            certificates::CERTIFICATES,
            cluster_state::{API, INITIALISED},
            probed::Probed,
            questions::PODS_KNOWN,
        },
        capabilities::{
            etcd::{HEALTHY, member_status::STATUS},
            kube_proxy::services::SERVICES,
        },
        testing::{self, KUBERNETES},
    };

    /// The status of three nodes if the first gives these answers. If `silent`, the last host does not answer.
    async fn status(api: Option<&str>, pem: &str, silent: bool) -> Status {
        status_with(api, pem, silent, |_| {}).await
    }

    /// The same with further answers of the first host.
    async fn status_with(
        api: Option<&str>,
        pem: &str,
        silent: bool,
        says: impl FnOnce(&mut Facts),
    ) -> Status {
        let (spec, directory) = (testing::sample("three-nodes.yaml"), tempfile::tempdir().unwrap());
        let session = testing::session(spec.clone(), directory.path());
        let mut probed: Probed = testing::fresh(&spec);
        for host in spec.etcd_hosts() {
            probed.facts.get_mut(&host.name).unwrap().reply(&HEALTHY, "yes");
        }
        probed.facts.values_mut().for_each(testing::connect);
        let first = probed.facts.get_mut(&spec.hosts[0].name).unwrap();
        first.reply(&INITIALISED, "yes");
        first.reply(&CERTIFICATES, format!("@apiserver key - -\n{pem}@ca - - -\n{pem}end\n"));
        match api {
            Some(api) => first.reply(&API, api),
            None => first.time_out(&API),
        }
        says(first);
        if silent {
            let last = &spec.hosts.last().unwrap().name;
            probed.facts.remove(last);
            probed.failures.insert(last.clone(), kk_engine::Failure::new("no route to host"));
        }
        let inputs = session.create_inputs(&probed).await.unwrap();
        of(&inputs, Vec::new(), Vec::new())
    }

    #[tokio::test]
    async fn each_node_has_the_state_that_is_known_of_it() {
        let names: Vec<String> =
            testing::sample("three-nodes.yaml").hosts.iter().map(|host| host.name.clone()).collect();
        let line = |name: &str, ready: &str| format!("Node\t{name}\t{ready}\t{KUBERNETES}\t\t\t\n");
        let (pem, states) = (testing::certificate(365, 300), |status: &Status| {
            status.nodes.iter().map(|node| node.state).collect::<Vec<_>>()
        });
        let some = line(&names[0], "True") + &line(&names[1], "False") + "end\n";
        let partly = status(Some(&some), &pem, false).await;
        assert_eq!(states(&partly), [NodeState::Ready, NodeState::NotReady, NodeState::Missing]);
        let all = names.iter().map(|name| line(name, "True")).collect::<Vec<_>>().concat() + "end\n";
        assert!(status(Some(&all), &pem, false).await.is_well() && !partly.is_well());
        let booted = status_with(Some(&all), &pem, false, |facts| facts.reply(&PODS_KNOWN, "no\n")).await;
        assert_eq!(states(&booted), [NodeState::NotReady, NodeState::Ready, NodeState::Ready]);
        assert!(!booted.is_well(), "the API speaks of the pods of before");
        let cut_off =
            status_with(Some(&all), &pem, false, |facts| facts.reply(&SERVICES, "dns\tno\napi\tok\n")).await;
        assert_eq!(states(&cut_off)[0], NodeState::NotReady);
        let mute = status_with(Some(&all), &pem, false, |facts| facts.time_out(&SERVICES)).await;
        assert_eq!(states(&mute)[0], NodeState::Unknown, "no answer is not no");
        let silent = status(Some(&all), &pem, true).await;
        assert_eq!(states(&silent)[2], NodeState::Silent);
        let down = status(None, &pem, false).await;
        assert!(!down.api_answers && states(&down) == [NodeState::Unknown; 3]);
    }

    #[tokio::test]
    async fn alarms_of_etcd_are_shown_and_are_not_well() {
        let names = testing::sample("three-nodes.yaml").hosts;
        let line = |host: &Host| format!("Node\t{}\tTrue\t{KUBERNETES}\t\t\t\n", host.name);
        let all = names.iter().map(line).collect::<String>() + "end\n";
        let pem = testing::certificate(365, 300);
        for (errors, alarms) in
            [("memberID:7 alarm:NOSPACE ", vec!["NOSPACE"]), ("etcdserver: no leader", vec![])]
        {
            let printed = format!(
                r#"[{{"Status":{{"header":{{"cluster_id":1,"member_id":7,"revision":42}},"version":"3.6.16","leader":7,"dbSize":1,"errors":["{errors}"]}}}}]"#
            );
            let status = status_with(Some(&all), &pem, false, |facts| facts.reply(&STATUS, printed)).await;
            assert_eq!(status.etcd_alarms, alarms.iter().map(|kind| (*kind).to_owned()).collect());
            assert_eq!(status.is_well(), alarms.is_empty(), "{errors}");
        }
    }

    #[tokio::test]
    async fn what_a_create_renews_is_due_and_a_ca_is_not() {
        let status = status(Some("end\n"), &testing::certificate(365, 10), false).await;
        let due: Vec<_> = status.certificates.iter().map(|one| (one.name.as_str(), one.due)).collect();
        assert_eq!(due, [("apiserver", true), ("ca", false)]);
        // Whole days: the certificate was created a moment ago, or in the same second.
        assert!(matches!(status.certificates[0].days, Some(9 | 10)));
    }
}
