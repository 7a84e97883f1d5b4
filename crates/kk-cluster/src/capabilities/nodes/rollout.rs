//! The order in which kubelets get changed settings: one host shows that they work, then a share of the others at a time.

use kk_artifact::Component;
use kk_config::{Host, Role};
use kk_engine::{Facts, HostWork, Most, Task, Turn, actions::any_needed};

use super::update_kubelet_settings;
use crate::{
    BuildError,
    capabilities::{kubelet, programs},
    inputs::Inputs,
    slots,
};

/// How many of the nodes have their kubelet restarted at once, after the first one.
const SHARE: Most = Most::Percent(25);

/// What changes for kubelets that have joined.
pub(super) struct Rollout {
    /// All nodes. Those whose kubelet is down are first: they have nothing to lose. Those that join now are last.
    order: Vec<String>,
    /// The node whose kubelet shows that the settings work. `None` when nothing changes.
    first: Option<String>,
}

impl Rollout {
    pub(super) fn new(inputs: &Inputs) -> Result<Self, BuildError> {
        let nodes = inputs.nodes();
        let mut changed = Vec::new();
        for (host, facts) in &nodes {
            if inputs.has_joined(host) && changes(inputs, host, facts)? {
                changed.push(host.name.as_str());
            }
        }
        let mut order = nodes;
        order.sort_by_key(|(host, facts)| {
            (!inputs.has_joined(host), is_active(facts), host.has_role(&Role::ControlPlane))
        });
        let order: Vec<String> = order.into_iter().map(|(host, _)| host.name.clone()).collect();
        let first = order.iter().find(|name| changed.contains(&name.as_str())).cloned();
        Ok(Self { order, first })
    }

    /// The task as a part of the turns; as it is when nothing changes.
    pub(super) fn in_turns(&self, task: Task) -> Task {
        if self.first.is_none() {
            return task;
        }
        task.turn(Turn::new("kubelet", SHARE).order(self.order.iter().cloned()))
    }

    /// Lets all nodes but the first wait until the first one's kubelet works.
    pub(super) fn after_first(&self, host: &Host, work: HostWork) -> HostWork {
        match &self.first {
            Some(first) if *first != host.name => work.needs(slots::first_kubelet_slot()),
            _ => work,
        }
    }

    /// Whether this node goes first.
    pub(super) fn is_first(&self, host: &Host) -> bool {
        self.first.as_ref() == Some(&host.name)
    }
}

/// Whether this run gives a kubelet other settings, flags or another program.
pub(super) fn changes(inputs: &Inputs, host: &Host, facts: &Facts) -> Result<bool, BuildError> {
    Ok(update_kubelet_settings::is_needed(inputs, host, facts)
        || any_needed(&kubelet::files(inputs, host)?, facts)
        || programs::changes(inputs, host, Component::Kubelet))
}

fn is_active(facts: &Facts) -> bool {
    facts.units.get("kubelet.service").is_some_and(|unit| unit.active)
}

#[cfg(test)]
mod tests {
    use kk_engine::{FileFact, UnitFact};

    use super::*;
    use crate::{Probed, capabilities::nodes::start_kubelet, testing};

    /// Hosts that have all joined and run their kubelets, without notes: the settings of all are to change.
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
            let rollout = Rollout::new(&inputs).unwrap();
            let first = rollout.first.clone().unwrap();
            for task in [
                update_kubelet_settings::task(&inputs, &rollout),
                start_kubelet::task(&inputs, &rollout).unwrap(),
            ] {
                assert_eq!(task.turn.unwrap().order[0], first);
                for (host, work) in &task.hosts {
                    assert_eq!(work.needs.contains(&slots::first_kubelet_slot()), *host != first, "{host}");
                }
            }
            first
        };
        assert!(is_worker(&first));
        // One that is down has nothing to lose, also a control plane.
        let down = spec.first_control_plane().name.clone();
        probed.facts.get_mut(&down).unwrap().units.clear();
        let inputs = session.create_inputs(&probed).await.unwrap();
        assert_eq!(Rollout::new(&inputs).unwrap().first, Some(down));
    }

    #[tokio::test]
    async fn nodes_that_join_take_no_turns() {
        let spec = testing::sample("three-nodes.yaml");
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        let fresh = testing::fresh(&spec);
        let inputs = session.create_inputs(&fresh).await.unwrap();
        let rollout = Rollout::new(&inputs).unwrap();
        assert!(rollout.first.is_none());
        assert!(update_kubelet_settings::task(&inputs, &rollout).turn.is_none());
    }
}
