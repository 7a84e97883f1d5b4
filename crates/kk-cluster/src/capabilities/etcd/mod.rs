//! Runs etcd by systemd, with its own CA and the v3 API only. Each member has only its own keys.

mod alarms;
mod check;
mod configure_etcd;
mod confinement;
pub(crate) mod defragment;
pub(crate) mod etcdctl;
mod files;
mod health;
mod identity;
mod immutable;
mod install_certificates;
mod join_member;
pub(crate) mod member_status;
pub(crate) mod membership;
mod metrics;
pub(crate) mod moves;
mod quorum;
mod remove_certificates;
mod remove_etcd;
mod remove_lost_members;
pub(crate) mod remove_member;
mod save_certificates;
mod start_etcd;

pub(crate) use alarms::{all as alarms, set_quota};
pub(crate) use check::UNIT;
pub(crate) use confinement::has_own_view;
pub(crate) use files::{JOINED, JOINED_TEXT, METRICS_PORT};
pub(crate) use health::{FUNCTION as HEALTHY_FUNCTION, with_ca as health_with_ca};
#[cfg(test)]
pub(crate) use immutable::ENVIRONMENT;
pub(crate) use install_certificates::pairs;
use kk_artifact::Component;
use kk_config::{Host, Role, Spec};
use kk_engine::{Facts, ProbeSpec, Task};
pub(crate) use metrics::{names_members, watches_members};
pub(crate) use start_etcd::{START_TASK, wait, wait_for_start};
#[cfg(test)]
pub(crate) use {check::DATA, health::HEALTHY};

use crate::{
    base::{
        error::BuildError,
        findings::{Findings, Setting},
        requirements::{Port, ProgramStage},
    },
    model::{
        capability::{Capability, Stage},
        inputs::Inputs,
        options::Leaving,
    },
};

/// Whether the member of a host was healthy at the time of the probe. `None`: the host did not report it.
pub(crate) fn is_healthy(facts: &Facts) -> Option<bool> {
    facts.answer(&health::HEALTHY).answered()
}

fn is_active(facts: &Facts) -> bool {
    facts.units.get("etcd.service").is_some_and(|unit| unit.active)
}

/// etcd on the hosts with its role.
pub(crate) struct Etcd;

impl Capability for Etcd {
    fn name(&self) -> &'static str {
        "etcd"
    }

    fn stage(&self) -> Stage {
        Stage::Hosts
    }

    fn programs(&self, _spec: &Spec, host: &Host) -> Vec<(ProgramStage, Component)> {
        if host.has_role(&Role::Etcd) { vec![(ProgramStage::Runtime, Component::Etcd)] } else { Vec::new() }
    }

    fn ports(&self, spec: &Spec, host: &Host) -> Vec<Port> {
        if !host.has_role(&Role::Etcd) {
            return Vec::new();
        }
        let ports = [spec.etcd.port, spec.etcd.peer_port].into_iter().chain(files::metrics_port(spec));
        ports.map(|number| Port::tcp(number, "etcd")).collect()
    }

    fn asks(&self, inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
        if host.has_role(&Role::Etcd) {
            check::asks(inputs.spec, probe);
            probe.ask(&health::question(inputs.spec, host));
            probe.ask(&member_status::question_if_installed(inputs.spec, host));
            probe.ask(&join_member::question(inputs));
            probe.ask(&confinement::question(inputs));
            probe.ask(&files::mount_question(inputs.spec));
            probe.ask(&identity::identity_question(inputs));
            probe.ask(&identity::members_question(inputs, host));
        }
    }

    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        check::findings(inputs, found);
        alarms::findings(inputs, found);
        confinement::findings(inputs, found);
        identity::findings(inputs, found);
        join_member::findings(inputs, found);
        moves::findings(inputs, found);
        quorum::findings(inputs, found);
    }

    fn immutable(&self, inputs: &Inputs) -> Vec<Setting> {
        immutable::settings(inputs)
    }

    /// The members of a new cluster start at once. A new member of a running cluster joins it, as does a member that has lost its
    /// data.
    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        Ok(vec![
            save_certificates::task(inputs),
            install_certificates::task(inputs),
            configure_etcd::task(inputs)?,
            remove_lost_members::task(inputs),
            join_member::task(inputs)?,
            start_etcd::task(inputs)?,
        ])
    }

    fn leave(&self, inputs: &Inputs, leaving: &Leaving) -> Vec<Task> {
        remove_member::tasks(inputs, leaving)
    }

    fn remove(&self, inputs: &Inputs) -> Vec<Task> {
        vec![remove_etcd::task(inputs), remove_certificates::task(inputs)]
    }
}
