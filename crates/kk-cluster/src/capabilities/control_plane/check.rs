//! Checks the API and the certificates of control planes, and finds hosts of other clusters.

use kk_config::Host;
use kk_engine::Facts;
use time::OffsetDateTime;

use super::renewal;
use crate::{
    base::{
        certificates::{self, Age},
        cluster_state::{API, INITIALISED},
        findings::Findings,
        host_layout::{CLUSTER_CA, KUBELET_CONF, KUBELET_UNIT},
        questions::SETTINGS,
    },
    model::inputs::Inputs,
};

/// Reports hosts that belong, or belonged, to a cluster other than the cluster whose API is queried.
pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    for (host, facts) in inputs.control_planes() {
        found.unanswered(host, &facts.answer(&INITIALISED), "whether its control plane was initialised");
        found.unanswered(host, &facts.answer(&SETTINGS), "the settings of its control plane");
        found.unanswered(host, &facts.answer(&renewal::BEGUN), "which certificates were being renewed");
        certificates(inputs, host, facts, found);
    }
    api(inputs, found);
    let ca = |host: &Host| Some(inputs.facts(host)?.files.get(CLUSTER_CA)?.sha256.as_str());
    let ours = ca(inputs.api_host);
    for (host, facts) in inputs.nodes() {
        let theirs = ca(host);
        // Other installers store their CA elsewhere.
        if theirs.is_none() && facts.files.contains_key(KUBELET_CONF) && !facts.owns(KUBELET_UNIT) {
            found.error(
                host,
                "it is a node of a cluster that kk did not make",
                format!("remove that cluster from it first, or remove {} from this file", host.name),
            );
        }
        if theirs.is_some()
            && ours.is_none()
            && inputs.spec.control_planes().len() > inputs.control_planes().len()
        {
            // A control plane that did not answer may have the CA.
            continue;
        }
        if theirs.is_some() && ours.is_none() {
            // If a working cluster has lost its control plane, the operator must not remove its other nodes.
            found.error(
                host,
                "it has joined a cluster, but no control plane in the file has the CA of that cluster",
                "add a running control plane of that cluster to spec.roleGroups; remove nothing from this \
                 host while that cluster is in use",
            );
        } else if theirs.is_some() && theirs != ours {
            found.error(
                host,
                "it has certificates of another cluster",
                format!(
                    "remove that cluster first (kk delete cluster with its file, or kubeadm reset), or \
                     remove {} from this file",
                    host.name
                ),
            );
        }
    }
    let runs_one = inputs
        .facts(inputs.api_host)
        .is_some_and(|facts| facts.files.contains_key("/etc/kubernetes/manifests/kube-apiserver.yaml"));
    if ours.is_none() && runs_one {
        found.error(inputs.api_host, "it runs a control plane without a CA", "remove that cluster first");
    }
}

/// Reports the state of the API of an initialised cluster, or why it does not answer: this explains the plan.
fn api(inputs: &Inputs, found: &mut Findings) {
    let (host, state) = (inputs.api_host, &inputs.state);
    if state.has_lost_its_data() {
        found.error(
            host,
            "the API answers and has no data: etcd serves an empty cluster",
            "restore etcd's data (is its disk mounted?); to start again, delete the cluster first",
        );
    }
    let why = inputs.facts(host).map(|facts| facts.answer(&API));
    if let Some(why) = why.as_ref().and_then(|answer| answer.unanswered()).filter(|_| state.is_initialised())
    {
        // A refusal is an answer: the API works, but the account of kk has no rights.
        if why.to_string().contains("(Forbidden)") {
            let what = format!("the API refuses the account of administrators: {why}");
            found.adapted(host, what, "the run restores the ClusterRole cluster-admin and its binding first");
        } else {
            found.adapted(host, format!("the API does not answer: {why}"), "the run restores it first");
        }
    }
}

/// Reports certificates that this run renews, and certificates that expire soon.
fn certificates(inputs: &Inputs, host: &Host, facts: &Facts, found: &mut Findings) {
    let renewed = renewal::of(inputs, host, facts);
    for one in &renewed {
        found.adapted(host, format!("{} {}", one.name, one.why), "it is renewed");
    }
    let now = OffsetDateTime::now_utc();
    for (name, certificate) in certificates::of(facts) {
        let Some(validity) = certificate.validity.filter(|validity| validity.age(now) != Age::Good) else {
            continue;
        };
        let is_ca = ["ca", "front-proxy-ca"].contains(&name.as_str());
        if name.starts_with("kubelet-") || renewed.iter().any(|one| one.name == name) {
            continue;
        }
        let hint = if is_ca {
            "replace it before that date: kk certs rotate-ca"
        } else if !renewal::can_sign(facts, &name) {
            "the key of the CA is not on this host: renew the certificate where the key is kept, or restore the key and run kk create cluster"
        } else {
            "kk create cluster renews it in its last 30 days, or in its last third if it is valid for less \
             than 90 days"
        };
        found.warning(host, format!("{name} {}", validity.words(now)), hint);
    }
}
