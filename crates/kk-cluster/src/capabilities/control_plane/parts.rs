//! Finds static pods of a control plane that are not ready. Their node may be Ready nevertheless.

use kk_config::Host;
use kk_engine::Facts;

use super::shared_files::takes_part;
use crate::{
    base::{
        cluster_state::{API, ClusterState, static_pod},
        findings::Findings,
    },
    model::inputs::Inputs,
};

/// Static pods of a control plane that are not ready according to the API of the cluster, and an API server that does not answer
/// itself. Empty if no API has answered.
pub(crate) fn not_ready(inputs: &Inputs, host: &Host, facts: &Facts) -> Vec<&'static str> {
    if !inputs.state.answered || !takes_part(inputs, host) {
        return Vec::new();
    }
    let is_ready = |program: &&'static str| {
        let (namespace, name) = static_pod(program, host);
        inputs.state.pods.get(&format!("{namespace}/{name}")) == Some(&true)
            && (*program != "kube-apiserver" || ClusterState::of(facts).answered)
    };
    inputs.requirements.static_pods().into_iter().filter(|program| !is_ready(program)).collect()
}

pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    for (host, facts) in inputs.control_planes() {
        let parts = not_ready(inputs, host, facts);
        if parts.is_empty() {
            continue;
        }
        let why = facts.answer(&API).unanswered().map(|why| format!(" (its API: {why})")).unwrap_or_default();
        found.warning(
            host,
            format!("not ready: {}{why}", parts.join(", ")),
            "the run waits for it; see \"crictl ps -a\", \"crictl logs\" and \"journalctl -u kubelet\" on the host",
        );
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use kk_engine::{FileFact, Plan};

    use super::*;
    use crate::{
        base::cluster_state::INITIALISED,
        capabilities::verify::Verify,
        commands::{
            create_cluster,
            status::{self, NodeState},
        },
        model::capability::Capability as _,
        testing::{self, KUBERNETES},
    };

    const PARTS: [&str; 3] = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];

    /// A cluster of two control planes, where everything else works. Returns the findings, whether a create that changes nothing
    /// verifies, and the state of the second node. The pod named `pod` is not ready; `answers` specifies whether the API server
    /// of the second control plane answers.
    async fn seen(pod: &str, answers: bool) -> (Vec<String>, bool, NodeState) {
        let host = |n| format!("  - {{name: n{n}, address: 192.0.2.{n}}}\n");
        let hosts = (1..3).map(host).collect::<Vec<_>>().concat();
        let spec = testing::spec(&format!(
            "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {{name: t}}\nspec:\n  hosts:\n{hosts}  \
             roleGroups: {{etcd: [n1], control-plane: [n1, n2], worker: [n1]}}\n  controlPlaneEndpoint: {{address: 192.0.2.1}}\n"
        ));
        let mut api = String::new();
        for host in &spec.hosts {
            let _ = writeln!(api, "Node\t{}\tTrue\t{KUBERNETES}\t\t", host.name);
            for part in PARTS {
                let name = format!("{part}-{}", host.name);
                let ready = if name == pod { "False" } else { "True" };
                let _ = writeln!(api, "Pod\tkube-system/{name}\t{ready}");
            }
        }
        api += "Deployment\tkube-system/coredns\t2\t2\nDaemonSet\tkube-system/kube-proxy\t2\t2\n\
                DaemonSet\tkube-flannel/kube-flannel-ds\t2\t2\nend\n";
        let mut probed = testing::fresh(&spec);
        for (name, facts) in &mut probed.facts {
            testing::connect(facts);
            facts.reply(&INITIALISED, "yes");
            if name == "n1" || answers {
                facts.reply(&API, api.clone());
            } else {
                facts.time_out(&API);
            }
            for path in ["/etc/kubernetes/kubelet.conf", "/etc/kubernetes/pki/ca.crt"] {
                facts.files.insert(path.into(), FileFact { sha256: "same".into(), ..FileFact::default() });
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec, directory.path());
        let inputs = session.create_inputs(&probed).await.unwrap();
        let mut found = Findings::default();
        findings(&inputs, &mut found);
        let said =
            found.0.into_iter().map(|one| format!("{}: {}", one.host.unwrap_or_default(), one.message));
        let plan = Plan::new(create_cluster::pipeline(&inputs).unwrap(), &probed.facts).unwrap();
        let status = status::of(&inputs, Vec::new(), plan.changes());
        (said.collect(), !Verify.verify(&inputs, false).is_empty(), status.nodes[1].state)
    }

    #[tokio::test]
    async fn a_part_that_is_not_ready_is_named_and_waited_for_on_a_node_that_is_ready() {
        assert_eq!(seen("", true).await, (vec![], false, NodeState::Ready));
        for part in PARTS {
            let wanted = (vec![format!("n2: not ready: {part}")], true, NodeState::NotReady);
            assert_eq!(seen(&format!("{part}-n2"), true).await, wanted);
        }
        let (said, verifies, state) = seen("", false).await;
        assert!(
            said.len() == 1 && said[0].starts_with("n2: not ready: kube-apiserver (its API: "),
            "{said:?}"
        );
        assert_eq!((verifies, state), (true, NodeState::NotReady));
    }
}
