//! containerd: its configuration, its access to registries, its unit, and the pods that it runs.

mod check;
mod configure_containerd;
mod configure_registries;
mod files;
mod immutable;
mod registries;
mod remove_containerd;
mod remove_pod_networks;
mod remove_pods;
mod start_containerd;

use std::collections::BTreeSet;

use kk_artifact::Component;
use kk_config::{Host, Role, Spec};
use kk_engine::{Facts, ProbeSpec, Task};

use crate::{
    base::{
        error::BuildError,
        findings::{Findings, Setting},
        requirements::{ImageStage, ProgramStage, Recorded},
    },
    model::{
        capability::{Capability, Stage},
        cluster::{Cluster, Runtime},
        inputs::Inputs,
    },
};

#[cfg(test)]
pub(crate) use check::DATA;
pub(crate) use immutable::{CONFIG, ROOT};
pub(super) use registries::{basic_auth, check as check_files};

pub(super) fn is_active(facts: &Facts) -> bool {
    facts.units.get("containerd.service").is_some_and(|unit| unit.active)
}

/// containerd on every node.
pub(super) struct Containerd;

/// The properties that other capabilities need.
pub(super) const RUNTIME: Runtime = Runtime {
    cri_socket: "unix:///run/containerd/containerd.sock",
    unit: "containerd",
    components: &[Component::Containerd, Component::Runc, Component::CniPlugins],
    operations: include_str!("operations.sh"),
};

impl Capability for Containerd {
    fn name(&self) -> &'static str {
        "containerd"
    }

    fn stage(&self) -> Stage {
        Stage::Hosts
    }

    fn programs(&self, _spec: &Spec, host: &Host) -> Vec<(ProgramStage, Component)> {
        if !host.is_node() {
            return Vec::new();
        }
        let runtime = [Component::Containerd, Component::Runc, Component::Crictl];
        let mut programs = runtime.map(|component| (ProgramStage::Runtime, component)).to_vec();
        programs.push((ProgramStage::Tools, Component::CniPlugins));
        programs
    }

    /// The image of the sandbox of every pod.
    fn images(&self, cluster: &Cluster, host: &Host) -> Vec<(ImageStage, String)> {
        if !host.is_node() {
            return Vec::new();
        }
        let stage =
            if host.has_role(&Role::ControlPlane) { ImageStage::ControlPlane } else { ImageStage::Node };
        vec![(stage, cluster.images.of(Component::Pause))]
    }

    fn directories(&self, spec: &Spec) -> Vec<String> {
        let network = ["/var/lib/cni", "/etc/cni/net.d", "/opt/cni/bin"].map(str::to_owned);
        network.into_iter().chain([spec.registry.containerd_data_dir.clone()]).collect()
    }

    fn asks(&self, inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
        if host.is_node() {
            check::asks(inputs, probe);
        }
        // Also on a host that was a node before the file changed its role, because it may leave.
        probe.ask(&immutable::ROOT);
    }

    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        check::findings(inputs, found);
    }

    fn immutable(&self, inputs: &Inputs) -> Vec<Setting> {
        immutable::settings(inputs)
    }

    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        Ok(vec![
            configure_containerd::task(inputs)?,
            configure_registries::task(inputs)?,
            start_containerd::task(inputs)?,
        ])
    }

    /// Pods are always removed; the runtime itself only if the user requests it.
    fn remove(&self, inputs: &Inputs) -> Vec<Task> {
        let mut tasks = vec![remove_pods::task(inputs), remove_pod_networks::task(inputs)];
        if inputs.options.remove_runtime {
            tasks.push(remove_containerd::task(inputs));
        }
        tasks
    }

    /// `/etc/cni` is included: containerd exits when the directory that it watches is removed.
    fn stays(&self, cluster: &Cluster) -> Vec<Recorded> {
        let data: BTreeSet<String> =
            cluster.hosts().into_iter().map(|(_, facts)| immutable::data_of(cluster, facts)).collect();
        let exact = [
            "/etc/crictl.yaml",
            "/etc/systemd/system/containerd.service",
            "/usr/local/bin/crictl",
            "/usr/local/bin/ctr",
            "/usr/local/bin/runc",
            "containerd.service",
        ];
        let below = ["/etc/cni", "/etc/containerd", "/usr/local/bin/containerd"];
        let exact = exact.map(str::to_owned).into_iter().chain(data).map(Recorded::Exact);
        exact.chain(below.map(Recorded::Prefix)).collect()
    }
}
