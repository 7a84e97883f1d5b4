//! Versions of a cluster. They do not depend on the defaults of the kk that is used: a note on the control planes stores them,
//! and only the file changes them.

mod record_versions;
mod recorded;

use std::collections::BTreeSet;

use kk_artifact::{Component, Versions as Chosen};
use kk_config::{Host, Role};
use kk_engine::{ProbeSpec, Task};

use crate::{
    base::{error::BuildError, findings::Findings},
    model::{
        capability::{Capability, Stage},
        command::Command,
        inputs::Inputs,
    },
};

pub(crate) use recorded::{
    RECORDED, Recorded, is_older_minor, of_any_version, of_cluster, of_version, oldest,
};

/// The versions of a cluster.
pub(crate) struct Versions;

impl Capability for Versions {
    fn name(&self) -> &'static str {
        "versions"
    }

    fn stage(&self) -> Stage {
        Stage::Hosts
    }

    fn asks(&self, _inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
        if host.has_role(&Role::ControlPlane) {
            probe.ask(&RECORDED);
        }
    }

    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        for (host, facts) in inputs.control_planes() {
            if let Some(why) = facts.answer(&RECORDED).unanswered() {
                found.error(
                    host,
                    format!("the versions of its cluster cannot be read: {why}"),
                    "run again when the host is less busy: without them other versions might be installed",
                );
            }
        }
        let recorded = of_cluster(&inputs.presence, inputs.api_host, inputs.spec);
        for (name, there) in steps_back(inputs, recorded.as_ref()) {
            let wanted = inputs.spec.kubernetes.version;
            found.error(
                None,
                format!(
                    "the cluster has {name} {there}, but this file with Kubernetes {wanted} selects an \
                     older version"
                ),
                format!(
                    "set {name} {there} or a newer version in spec.components: its data cannot be \
                         downgraded"
                ),
            );
        }
        if recorded.is_none() {
            return;
        }
        let defaults = Chosen::for_kubernetes(inputs.spec.kubernetes.version, &inputs.spec.components);
        let chosen = Recorded::of(&inputs.versions);
        let others = defaults.map(|defaults| chosen.others(&defaults)).unwrap_or_default();
        if !others.is_empty() {
            found.adapted(
                None,
                format!("a new cluster would get other versions: {}", others.join(", ")),
                "the cluster keeps its current versions; to change one, set it in spec.components",
            );
        }
    }

    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        Ok(vec![record_versions::task(inputs)])
    }
}

/// Components with data that would be downgraded to an older minor version than the cluster has. `recorded` is the note of the
/// cluster.
///
/// The note may be ahead of hosts that are rolled back, because it belongs to a control plane whose turn is over. These hosts
/// return to the containerd that they had before their turn, so a rollback does not compare it. `Session::to_put_back` has
/// already decided that etcd is not downgraded.
fn steps_back(inputs: &Inputs, recorded: Option<&Recorded>) -> BTreeSet<(&'static str, String)> {
    let (presence, api_host, spec) = (&inputs.presence, inputs.api_host, inputs.spec);
    let noted = recorded.cloned().or_else(|| recorded::before_upgrade(presence, api_host, spec));
    let (of, ahead) = if inputs.command == Command::RollBack {
        (&[Component::Etcd][..], Vec::new())
    } else {
        (&[Component::Etcd, Component::Containerd][..], recorded::ahead(presence, api_host, spec))
    };
    noted.iter().chain(&ahead).flat_map(|noted| noted.steps_back(of, &inputs.versions)).collect()
}
