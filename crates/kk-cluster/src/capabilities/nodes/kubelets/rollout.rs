//! Order in which kubelets get changed settings.

use kk_artifact::Component;
use kk_config::{Host, Role};
use kk_engine::{Facts, actions::any_needed};

use super::update_kubelet_settings;
use crate::{
    base::{
        error::BuildError,
        rollout::{Candidate, Rollout},
    },
    capabilities::{kubelet, programs},
    model::inputs::Inputs,
};

/// All nodes. Nodes whose kubelet is down are first, because wrong settings cannot make them worse. Nodes that join in this run
/// are last.
pub(crate) fn of_kubelets(inputs: &Inputs) -> Result<Rollout, BuildError> {
    let mut hosts = inputs.nodes();
    hosts.sort_by_key(|(host, facts)| {
        (!inputs.has_joined(host), kubelet::is_active(facts), host.has_role(&Role::ControlPlane))
    });
    let mut candidates = Vec::new();
    for (host, facts) in hosts {
        let runs = inputs.has_joined(host);
        candidates.push(Candidate { host, runs, changes: runs && changes(inputs, host, facts)? });
    }
    Ok(Rollout::new("kubelet", &candidates))
}

/// Whether this run changes the settings, the flags, the server certificate or the binary of a kubelet.
pub(crate) fn changes(inputs: &Inputs, host: &Host, facts: &Facts) -> Result<bool, BuildError> {
    Ok(update_kubelet_settings::is_needed(inputs, host, facts)
        || kubelet::server_certificate::due(facts).is_some()
        || any_needed(&kubelet::files(inputs, host)?, facts)
        || programs::changes(inputs, host, Component::Kubelet))
}

#[cfg(test)]
mod tests {
    use kk_config::Role;
    use kk_engine::{FileFact, UnitFact};

    use super::*;
    use crate::{
        base::{probed::Probed, slots},
        capabilities::nodes::kubelets::start_kubelet,
        model::capability::Capability as _,
        testing,
    };

    /// Hosts that have all joined and run their kubelets, without notes: the settings of all of them change.
    fn joined(spec: &kk_config::Spec) -> Probed {
        let mut probed = testing::fresh(spec);
        for facts in probed.facts.values_mut() {
            let file = FileFact { sha256: "same".into(), ..FileFact::default() };
            for path in ["/etc/kubernetes/kubelet.conf", "/etc/kubernetes/pki/ca.crt"] {
                facts.files.insert(path.into(), file.clone());
            }
            let running = UnitFact { active: true, ..UnitFact::default() };
            facts.units.insert("kubelet.service".into(), running);
        }
        probed
    }

    #[tokio::test]
    async fn one_kubelet_shows_that_changed_settings_work_before_the_others_get_them() {
        let spec = testing::sample("three-nodes.yaml");
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        let is_worker = |name: &str| {
            spec.hosts.iter().any(|host| host.name == name && !host.has_role(&Role::ControlPlane))
        };
        let mut probed = joined(&spec);
        let first = {
            let inputs = session.create_inputs(&probed).await.unwrap();
            let rollout = of_kubelets(&inputs).unwrap();
            let first = rollout.first().unwrap().to_owned();
            for task in [
                update_kubelet_settings::task(&inputs, &rollout).unwrap(),
                start_kubelet::task(&inputs, &rollout).unwrap(),
            ] {
                assert_eq!(task.turn.unwrap().order[0], first);
                for (host, work) in &task.hosts {
                    assert_eq!(
                        work.needs.contains(&slots::works_on_first_slot("kubelet")),
                        *host != first,
                        "{host}"
                    );
                }
            }
            // This also applies to unit and flags: nothing is written before a host's turn.
            let changes = |task: &kk_engine::Task, host: &str| {
                let facts = &probed.facts[host];
                let lines: Vec<_> = task.hosts[host].actions.iter().map(|a| a.check(facts)).collect();
                format!("{lines:?}")
            };
            let configure = kubelet::Kubelet.install(&inputs).unwrap();
            let update = update_kubelet_settings::task(&inputs, &rollout).unwrap();
            for host in update.hosts.keys() {
                assert!(changes(&update, host).contains("write /etc/systemd/system/kubelet.service"));
                assert!(!changes(&configure[0], host).contains("write "), "{host}");
            }
            first
        };
        assert!(is_worker(&first));
        // Wrong settings cannot make a node with a stopped kubelet worse, even a control plane.
        let down = spec.first_control_plane().name.clone();
        probed.facts.get_mut(&down).unwrap().units.clear();
        let inputs = session.create_inputs(&probed).await.unwrap();
        assert_eq!(of_kubelets(&inputs).unwrap().first(), Some(down.as_str()));
    }

    #[tokio::test]
    async fn nodes_that_join_take_no_turns() {
        let spec = testing::sample("three-nodes.yaml");
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        let fresh = testing::fresh(&spec);
        let inputs = session.create_inputs(&fresh).await.unwrap();
        let rollout = of_kubelets(&inputs).unwrap();
        assert!(rollout.first().is_none());
        assert!(update_kubelet_settings::task(&inputs, &rollout).unwrap().turn.is_none());
    }
}
