//! Basis of a delete. The file may have changed since the create, so a delete removes what the hosts report as installed, and
//! ignores what only the file specifies.

use kk_config::{Host, Role};
use kk_engine::{Facts, ProbeSpec};

use super::Session;
use crate::{
    base::{error::BuildError, host_layout::KUBELET_UNIT, probed::Probed},
    capabilities::{registry, runtime},
};

/// Requests the facts for [`Session::as_installed`].
pub(crate) fn asks(host: &Host, probe: &mut ProbeSpec) {
    probe.ask(&runtime::ROOT);
    if host.has_role(&Role::Registry) {
        registry::asks(probe);
    }
}

impl Session {
    /// The same cluster as it is installed on its hosts: a host on which kk installed a kubelet is a node, whatever its current
    /// role is, and the data of the registry is in the directory of its configuration. `leaves` selects the hosts that are
    /// cleaned.
    ///
    /// # Errors
    /// The runtime has to be removed, but it is unknown where a host stores its data.
    pub(in crate::commands) fn as_installed(
        &self,
        probed: &Probed,
        leaves: impl Fn(&Host) -> bool,
    ) -> Result<Self, BuildError> {
        let mut spec = self.spec.clone();
        let facts = |host: &Host| probed.facts.get(&host.name);
        for host in &mut spec.hosts {
            if !host.is_node() && facts(host).is_some_and(|facts| facts.owns(KUBELET_UNIT)) {
                host.roles.insert(Role::Worker);
            }
        }
        if self.settings.options.remove_runtime {
            let cleaned = spec.nodes().into_iter().filter(|host| leaves(host));
            data_is_known(cleaned.filter_map(|host| Some((host, facts(host)?))))?;
        }
        let of_registry = spec.own_registry().and_then(|own| registry::data(facts(own.host)?));
        spec.registry.registry_data_dir = of_registry.unwrap_or(spec.registry.registry_data_dir);
        self.with_spec(spec)
    }
}

/// Checks that every host with a runtime of kk reported where the runtime stores its data.
fn data_is_known<'a>(hosts: impl Iterator<Item = (&'a Host, &'a Facts)>) -> Result<(), BuildError> {
    for (host, facts) in hosts.filter(|(_, facts)| facts.owns(runtime::CONFIG)) {
        if let Some(why) = facts.answer(&runtime::ROOT).unanswered() {
            return Err(BuildError::Foreign {
                what: format!(
                    "{}: the host did not report where its container runtime stores its data: {why}; nothing is \
                     removed",
                    host.name
                ),
                hint: "run again; if the problem remains, check the load and the disk of the host".to_owned(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    const KUBELET: &str = "made\t/etc/systemd/system/kubelet.service";

    #[test]
    fn a_node_that_the_file_has_made_something_else_is_cleaned_as_a_node() {
        let mut spec = testing::sample("three-nodes.yaml");
        let name = spec.hosts[2].name.clone();
        spec.hosts[2].roles = [Role::Etcd].into();
        for (record, cleaned) in [(KUBELET, true), ("made\t/etc/etcd.env", false)] {
            let mut probed = testing::fresh(&spec);
            probed.facts.get_mut(&name).unwrap().owned = vec![record].into();
            let directory = tempfile::tempdir().unwrap();
            let session = testing::session(spec.clone(), directory.path());
            let plan = session.plan_delete(&probed).unwrap().plan;
            let tasks: Vec<String> = plan.changes().into_iter().map(|task| task.task).collect();
            for task in ["stop_kubelet", "remove_pods", "remove_node_files"] {
                assert_eq!(tasks.iter().any(|planned| planned == task), cleaned, "{record} {tasks:?}");
            }
        }
    }
}
