//! What a delete works with. The file may have changed since the create: then it removes what the hosts say that was installed,
//! and leaves alone what only the file says.

use std::collections::{BTreeMap, BTreeSet};

use kk_config::{Host, Role};
use kk_engine::{Facts, ProbeSpec};

use super::Session;
use crate::{
    BuildError, Probed,
    capabilities::{os::identity::KUBELET_UNIT, registry, runtime},
};

/// What [`Session::as_installed`] reads.
pub(crate) fn asks(host: &Host, probe: &mut ProbeSpec) {
    probe.ask(&runtime::ROOT);
    if host.has_role(&Role::Registry) {
        registry::asks(probe);
    }
}

impl Session {
    /// The same cluster as its hosts have it: one on which kk has installed a kubelet is a node, whatever its role is by now, and
    /// the data of runtime and registry is where they are configured to keep it. `leaves` are the hosts that are cleaned.
    ///
    /// # Errors
    /// The runtime is to be removed, and where its data is differs between hosts, or is not known.
    pub(super) fn as_installed(
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
        let cleaned = spec.nodes().into_iter().filter(|host| leaves(host));
        let cleaned: Vec<(&Host, &Facts)> = cleaned.filter_map(|host| Some((host, facts(host)?))).collect();
        if let Some(data) = self.runtime_data(&cleaned)? {
            spec.registry.containerd_data_dir = data;
        }
        let of_registry = spec.own_registry().and_then(|own| registry::data(facts(own.host)?));
        spec.registry.registry_data_dir = of_registry.unwrap_or(spec.registry.registry_data_dir);
        self.with_spec(spec)
    }

    /// Where the runtime of these hosts has its data; `None` where kk has configured none.
    fn runtime_data(&self, hosts: &[(&Host, &Facts)]) -> Result<Option<String>, BuildError> {
        let is_removed = self.settings.options.remove_runtime;
        let mut all: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for (host, facts) in hosts.iter().filter(|(_, facts)| facts.owns("/etc/containerd/config.toml")) {
            let answer = facts.answer(&runtime::ROOT);
            if let Some(why) = answer.unanswered().filter(|_| is_removed) {
                return Err(BuildError::Foreign {
                    what: format!(
                        "{}: the host did not say where its containerd keeps its data: {why}; nothing is removed",
                        host.name
                    ),
                    hint: "run again; if it stays so, look at the load and the disk of the host".to_owned(),
                });
            }
            if let Some(data) = answer.answered().filter(|data| !data.is_empty()) {
                all.entry(data).or_default().insert(&host.name);
            }
        }
        if all.len() > 1 && is_removed {
            let each = all.iter().map(|(data, hosts)| {
                format!("{data} on {}", hosts.iter().copied().collect::<Vec<_>>().join(", "))
            });
            return Err(BuildError::Foreign {
                what: format!(
                    "containerd keeps its data in {}; nothing is removed",
                    each.collect::<Vec<_>>().join(", and in ")
                ),
                hint: "run without --all, which leaves containerd".to_owned(),
            });
        }
        Ok(all.into_keys().next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, testing};

    const CONTAINERD: &str = "made\t/etc/containerd/config.toml";
    const KUBELET: &str = "made\t/etc/systemd/system/kubelet.service";

    /// The plan of a delete as text, or why there is none, where the runtime of each host says so.
    fn delete(remove_runtime: bool, roots: &[&str]) -> Result<String, String> {
        let spec = testing::sample("three-nodes.yaml");
        let directory = tempfile::tempdir().unwrap();
        let options = Options { remove_runtime, ..Options::default() };
        let session = testing::session_with(spec.clone(), directory.path(), options);
        let mut probed = testing::fresh(&spec);
        for (host, root) in spec.hosts.iter().zip(roots) {
            let facts = probed.facts.get_mut(&host.name).unwrap();
            facts.owned = vec![CONTAINERD, KUBELET].into();
            facts.reply(&runtime::ROOT, *root);
        }
        let session = session.as_installed(&probed, |_| true).map_err(|error| error.to_string())?;
        Ok(session.spec().registry.containerd_data_dir.clone())
    }

    #[test]
    fn the_runtime_goes_from_where_it_was_installed() {
        let of_file = testing::sample("three-nodes.yaml").registry.containerd_data_dir;
        assert_eq!(delete(true, &["/srv/a\n"; 3]), Ok("/srv/a".to_owned()));
        assert_eq!(delete(true, &["/srv/a\n", "", "/srv/a\n"]), Ok("/srv/a".to_owned()));
        assert_eq!(delete(true, &[""; 3]), Ok(of_file));
        let refused = delete(true, &["/srv/a\n", "/srv/b\n", "/srv/a\n"]).unwrap_err();
        assert!(refused.contains("/srv/a on") && refused.contains(", and in /srv/b on"), "{refused}");
        assert!(delete(false, &["/srv/a\n", "/srv/b\n", "/srv/a\n"]).is_ok());
    }

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
