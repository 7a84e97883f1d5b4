//! Manages the control plane: initialises it on one host, joins the others, and applies its settings from then on.

mod apply_changed_settings;
mod certificate;
mod check;
mod immutable;
mod init_control_plane;
mod join_control_plane;
mod manifests;
pub(crate) mod moves;
mod newest;
mod note;
mod open_for_joins;
pub(crate) mod parts;
mod publish_settings;
mod renew_certificates;
pub(crate) mod renewal;
mod restore_shared_files;
mod share_certificates;
mod shared_files;

use kk_artifact::Component;
use kk_config::{ControlPlaneEndpoint, Host, Role, Spec};
use kk_engine::{Facts, HostWork, ProbeSpec, Task};
pub(crate) use newest::newest;

use crate::{
    base::{
        cluster_state,
        error::BuildError,
        findings::{Findings, Setting},
        questions::SETTINGS,
        requirements::{ImageStage, Manifest, Port, Ready},
        slots,
    },
    capabilities::{etcd, manifests::from_template},
    model::{
        capability::{Capability, Stage},
        cluster::Cluster,
        inputs::Inputs,
    },
};

/// API server, controller manager and scheduler.
pub(crate) struct ControlPlane;

impl Capability for ControlPlane {
    fn name(&self) -> &'static str {
        "control-plane"
    }

    fn stage(&self) -> Stage {
        Stage::Hosts
    }

    fn images(&self, cluster: &Cluster, host: &Host) -> Vec<(ImageStage, String)> {
        if !host.has_role(&Role::ControlPlane) {
            return Vec::new();
        }
        [Component::KubeApiserver, Component::KubeControllerManager, Component::KubeScheduler]
            .map(|component| (ImageStage::ControlPlane, cluster.images.of(component)))
            .to_vec()
    }

    fn ports(&self, _spec: &Spec, host: &Host) -> Vec<Port> {
        if !host.has_role(&Role::ControlPlane) {
            return Vec::new();
        }
        vec![
            Port::tcp(ControlPlaneEndpoint::API_SERVER_PORT, "kube-apiserver"),
            Port::tcp(10257, "kube-controller-manager"),
            Port::tcp(10259, "kube-scheduler"),
        ]
    }

    fn asks(&self, inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
        let files = ["/etc/kubernetes/*", "/etc/kubernetes/pki/*", "/etc/kubernetes/manifests/*"];
        probe.files.extend(files.map(str::to_owned));
        if host.has_role(&Role::ControlPlane) {
            probe.ask(&cluster_state::INITIALISED);
            probe.ask(&cluster_state::api_question(inputs.spec, host, &inputs.requirements));
            probe.ask(&SETTINGS);
            probe.ask(&renewal::BEGUN);
            probe.ask(&manifests::MANIFESTS);
        }
    }

    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        check::findings(inputs, found);
        moves::findings(inputs, found);
        shared_files::findings(inputs, found);
        parts::findings(inputs, found);
    }

    fn immutable(&self, inputs: &Inputs) -> Vec<Setting> {
        immutable::settings(inputs)
    }

    fn manifests(&self, cluster: &Cluster) -> Result<Vec<Manifest>, BuildError> {
        let values = serde_json::json!({});
        let bootstrap = from_template(cluster, "bootstrap", "control-plane/bootstrap.yaml", &values)?;
        Ok(vec![Manifest { made_by_init: true, ..bootstrap }])
    }

    fn ready(&self, _cluster: &Cluster) -> Vec<Ready> {
        vec![Ready::StaticPods(&["kube-apiserver", "kube-controller-manager", "kube-scheduler"])]
    }

    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        Ok(vec![
            restore_shared_files::task(inputs),
            renew_certificates::task(inputs)?,
            init_control_plane::task(inputs),
            publish_settings::task(inputs),
            open_for_joins::task(inputs),
            share_certificates::task(inputs),
            join_control_plane::task(inputs),
            apply_changed_settings::task(inputs),
            etcd::moves::forget(inputs, &before_joins(inputs)),
        ])
    }
}

/// Makes the static pods read new certificates or manifests, and waits until they are ready.
pub(crate) const RESTART: &str = include_str!("restart_control_plane.sh");

pub(crate) use apply_changed_settings::before_joins;
pub(crate) use certificate::{RENEW, RENEWED, renew};
pub(crate) use publish_settings::are_changed as settings_are_changed;
pub use renewal::RENEWABLE;
pub(crate) use restore_shared_files::NAME as RESTORE_SHARED_FILES;

/// Makes work that restarts a control plane wait for everything that its static pods, and the kubelet that starts them, need.
fn before_restart(inputs: &Inputs, host: &Host, work: HostWork) -> HostWork {
    let mut work = work
        .needs(slots::runtime_slot(&host.name))
        .needs(slots::kube_programs_slot(&host.name))
        .needs(slots::node_tools_slot(&host.name));
    for (member, _) in inputs.etcd_hosts() {
        work = work.needs(slots::etcd_healthy_slot(&member.name));
    }
    work
}

/// Whether this run renews a kubeconfig of a control plane, which is specified by its name, such as `admin.conf`.
pub(crate) fn renews(inputs: &Inputs, host: &Host, facts: &Facts, name: &str) -> bool {
    host.has_role(&Role::ControlPlane)
        && renewal::of(inputs, host, facts).iter().any(|renewed| renewed.name == name)
}
