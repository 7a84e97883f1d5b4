//! A plain registry (distribution) on the host of the group `registry`: `kk init registry` and `kk delete registry`.
//!
//! It is no part of the cluster: a cluster may come and go while its images stay. So it has pipelines of its own, and a delete of
//! the cluster leaves it. What clusters need of it is its name in `/etc/hosts` and its CA, which [`trust`] lays under the
//! settings of the file.

mod ask_registry;
mod check;
mod configure_registry;
mod pushes;
mod remove_registry;
mod save_certificates;
mod start_registry;
mod trust;
mod upload_registry;

use std::{collections::BTreeSet, path::Path};

use kk_artifact::Component;
use kk_config::{Host, OwnRegistry, Role, Spec};
use kk_engine::{ProbeSpec, Task};

use crate::{
    base::{
        error::BuildError,
        pki::Pki,
        requirements::{Port, ProgramStage, Recorded},
    },
    model::{
        capability::{Capability, Stage},
        inputs::Inputs,
    },
};

pub(crate) use check::{asks, data, findings, findings_of_delete};
pub(crate) use pushes::password as password_for_pushes;
pub use pushes::registry_for_pushes;
pub(crate) use remove_registry::tasks as remove;
pub use trust::trust_own_registry;

/// The directory of its settings on its host.
const SETTINGS: &str = "/etc/registry";
/// The unit from which hosts pull images.
const UNIT: &str = "registry.service";
pub(crate) const UNIT_FILE: &str = "/etc/systemd/system/registry.service";
/// The unit that takes pushes.
const PUSH_UNIT: &str = "registry-push.service";
const PUSH_UNIT_FILE: &str = "/etc/systemd/system/registry-push.service";
const PROGRAM: &str = "/usr/local/bin/registry";
/// The user that it runs as.
const USER: &str = "registry";

/// Its needs on its host.
pub(crate) struct Registry;

impl Capability for Registry {
    fn name(&self) -> &'static str {
        "registry"
    }

    fn stage(&self) -> Stage {
        Stage::Hosts
    }

    fn programs(&self, _spec: &Spec, host: &Host) -> Vec<(ProgramStage, Component)> {
        if host.has_role(&Role::Registry) {
            vec![(ProgramStage::Runtime, Component::Registry)]
        } else {
            Vec::new()
        }
    }

    fn ports(&self, spec: &Spec, host: &Host) -> Vec<Port> {
        let own = spec.own_registry().filter(|own| own.host.name == host.name);
        own.map(|own| [own.port, own.push_port])
            .into_iter()
            .flatten()
            .map(|port| Port::tcp(port, "registry"))
            .collect()
    }

    fn asks(&self, _inputs: &Inputs, _host: &Host, probe: &mut ProbeSpec) {
        check::asks(probe);
    }
}

/// Where its certificates are on the control machine. `directory`: that of the cluster.
pub(crate) fn certificates(directory: &Path) -> std::path::PathBuf {
    directory.join("registry")
}

/// What brings it up. `pki`: its own.
pub(crate) fn install(
    inputs: &Inputs,
    own: &OwnRegistry<'_>,
    pki: &std::sync::Arc<Pki>,
) -> Result<Vec<Task>, BuildError> {
    Ok(vec![
        save_certificates::task(pki),
        upload_registry::task(inputs, own),
        configure_registry::task(inputs, own, pki)?,
        start_registry::task(inputs, own, pki)?,
    ])
}

/// What says that it works.
pub(crate) fn verify(inputs: &Inputs, own: &OwnRegistry<'_>, pki: &Pki) -> Task {
    ask_registry::task(inputs.spec, own, pki, &inputs.directory)
}

/// The lines of a host's record that are the registry's.
pub(crate) fn recorded(spec: &Spec) -> Vec<Recorded> {
    let exact = [PROGRAM, UNIT_FILE, UNIT, PUSH_UNIT_FILE, PUSH_UNIT, USER, &spec.registry.registry_data_dir];
    let exact = exact.into_iter().map(|name| Recorded::Exact(name.to_owned()));
    exact.chain([Recorded::Prefix(SETTINGS)]).collect()
}

/// The hosts that its commands look at and change.
pub(crate) fn hosts(own: &OwnRegistry<'_>) -> BTreeSet<String> {
    BTreeSet::from([own.host.name.clone()])
}
