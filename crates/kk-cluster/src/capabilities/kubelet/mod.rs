//! Configures the kubelet: its unit and its flags. A node gets its kubelet settings from the cluster when it joins.

mod check;
mod configure_kubelet;
mod files;
mod sandbox_flag;
pub(crate) mod server_certificate;
mod stop_kubelet;

use kk_artifact::Component;
use kk_config::{Host, Spec};
use kk_engine::{Facts, ProbeSpec, Task};

use crate::{
    base::{
        certificates::CERTIFICATES,
        error::BuildError,
        findings::Findings,
        questions::{BEGAN, CGROUP_DRIVER, CREDENTIALS},
        requirements::{Port, ProgramStage},
    },
    model::{
        capability::{Capability, Stage},
        inputs::Inputs,
    },
};

pub(crate) use files::{RESTARTS_AFTER, files, flags_file, lacks_settings};

/// Whether the kubelet runs.
pub(crate) fn is_active(facts: &Facts) -> bool {
    facts.units.get("kubelet.service").is_some_and(|unit| unit.active)
}

/// Whether the kubelet is part of a rollout: its files change only after other kubelets have shown that they work with them.
pub(crate) fn changes_in_turn(inputs: &Inputs, host: &Host, facts: &Facts) -> bool {
    inputs.has_joined(host) && is_active(facts)
}

/// The kubelet of every node.
pub(crate) struct Kubelet;

impl Capability for Kubelet {
    fn name(&self) -> &'static str {
        "kubelet"
    }

    fn stage(&self) -> Stage {
        Stage::Hosts
    }

    fn programs(&self, _spec: &Spec, host: &Host) -> Vec<(ProgramStage, Component)> {
        if host.is_node() {
            vec![
                (ProgramStage::Join, Component::Kubeadm),
                (ProgramStage::Join, Component::Kubelet),
                (ProgramStage::Tools, Component::Kubectl),
            ]
        } else {
            Vec::new()
        }
    }

    fn directories(&self, _spec: &Spec) -> Vec<String> {
        [
            "/etc/kubernetes",
            "/var/lib/kubelet",
            "/usr/libexec/kubernetes/kubelet-plugins/volume/exec",
            "/var/log/pods",
            "/var/log/containers",
        ]
        .map(str::to_owned)
        .to_vec()
    }

    fn ports(&self, _spec: &Spec, host: &Host) -> Vec<Port> {
        if !host.is_node() {
            return Vec::new();
        }
        vec![Port::tcp(10248, "kubelet"), Port::tcp(10250, "kubelet")]
    }

    fn asks(&self, _inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
        probe.units.insert("kubelet.service".to_owned());
        if host.is_node() {
            probe.files.extend(RESTARTS_AFTER.map(str::to_owned));
            probe.disks.insert(check::DATA.to_owned());
            probe.ask(&CREDENTIALS);
            probe.ask(&CERTIFICATES);
            probe.ask(&CGROUP_DRIVER);
            probe.ask(&BEGAN);
        }
    }

    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        check::findings(inputs, found);
    }

    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        Ok(vec![configure_kubelet::task(inputs)?])
    }

    fn remove(&self, inputs: &Inputs) -> Vec<Task> {
        vec![stop_kubelet::task(inputs)]
    }
}
