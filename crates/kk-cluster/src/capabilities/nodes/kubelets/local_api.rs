//! The address at which the kubelet of a control plane accesses the API.

use kk_config::{Host, Role};
use kk_engine::{Question, actions::Command, question};

use crate::{
    base::{api_server, shell::script},
    model::inputs::Inputs,
};

/// The address of the API in the kubeconfig of the kubelet.
pub(crate) const SERVER: Question<String> = Question::new(
    "kubelet_server",
    "sed -n 's/^ *server: *//p' /etc/kubernetes/kubelet.conf 2>/dev/null || :",
    question::text,
);

/// In an upgrade, makes the kubelet of a control plane use the API server on the same host, which has the new version. The
/// endpoint may resolve to an API server that is older than the kubelet, which Kubernetes does not support: a kubelet of 1.31
/// starts no pod with an API server of 1.30. The setting remains, as it does when kubeadm 1.33 or newer joins a control plane
/// (`ControlPlaneKubeletLocalMode`).
pub(crate) fn ask_next_to_it(inputs: &Inputs, host: &Host) -> Option<Command> {
    if !inputs.command.is_upgrade() || !host.has_role(&Role::ControlPlane) {
        return None;
    }
    let own = api_server::url(host);
    let text = script(&[("server", &own)], include_str!("local_api.sh"));
    let endpoint = inputs.endpoint().url();
    let command = Command::new("point the kubelet to the API server on its own host", text);
    Some(command.when(move |facts| facts.answer(&SERVER).answered().is_some_and(|server| server == endpoint)))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs};

    use super::*;
    use crate::{
        capabilities::nodes::Nodes,
        commands::add_nodes::tests::{ANSWERED, probed, spec},
        model::{capability::Capability as _, options::Drain},
        testing,
    };

    #[test]
    fn only_the_address_in_the_kubeconfig_changes() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("kubelet.conf");
        fs::write(&file, "- cluster:\n    certificate-authority-data: x\n    server: https://lb.example:16443\n  name: k\n")
            .unwrap();
        let text = script(&[("server", "https://192.0.2.1:6443")], include_str!("local_api.sh"))
            .replace("/etc/kubernetes/kubelet.conf", file.to_str().unwrap());
        for _ in 0..2 {
            assert!(testing::run_script(directory.path(), &text).status.success());
            let wanted = "- cluster:\n    certificate-authority-data: x\n    server: https://192.0.2.1:6443\n  name: k\n";
            assert_eq!(fs::read_to_string(&file).unwrap(), wanted);
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn in_its_turn_the_kubelet_of_a_control_plane_follows_the_api_server_next_to_it() {
        let directory = tempfile::tempdir().unwrap();
        let at = |version: &str| {
            let mut spec = spec();
            spec.hosts.truncate(2);
            spec.kubernetes.version = version.parse().unwrap();
            testing::session(spec, directory.path())
        };
        let (before, after) = (at("v1.30.0"), at("v1.31.0"));
        let fresh = testing::fresh(before.spec());
        let inputs = before.create_inputs(&fresh).await.unwrap();
        let endpoint = inputs.endpoint().url();
        for host in &before.spec().hosts {
            let mut probe = kk_engine::ProbeSpec::default();
            Nodes.asks(&inputs, host, &mut probe);
            assert_eq!(probe.questions.contains_key(SERVER.name()), host.has_role(&Role::ControlPlane));
        }
        for (host, server, follows) in [
            ("n1", endpoint.as_str(), true),
            ("n1", "https://192.0.2.1:6443", false),
            ("n1", "", false),
            ("n2", endpoint.as_str(), false),
        ] {
            let nodes = ["n1", "n2"].map(|name| format!("Node\t{name}\tTrue\tv1.30.0\t\t\t\n")).concat();
            let mut probed = probed(&before, Some(&(nodes + ANSWERED))).await;
            probed.facts.get_mut(host).unwrap().reply(&SERVER, server);
            let how = Drain { force: false, timeout: std::time::Duration::from_mins(1) };
            let turn = after.plan_turn(&probed, BTreeSet::from([host.to_owned()]), &how).await.unwrap();
            let changes = turn.plan.changes();
            let task =
                changes.iter().find(|task| task.host == host && task.task == "update_kubelet_settings");
            let changes = &task.unwrap().changes;
            // A kubelet that crashes during the upload restarts with an address that fits both versions.
            let first = changes[0] == "point the kubelet to the API server on its own host";
            assert_eq!(first, follows, "{host} {server}: {changes:?}");
            let create = before.plan_create(&probed).await.unwrap();
            let other = create.plan.changes().into_iter().flat_map(|task| task.changes);
            assert!(!other.into_iter().any(|change| change.contains("on its own host")), "{host} {server}");
        }
    }
}
