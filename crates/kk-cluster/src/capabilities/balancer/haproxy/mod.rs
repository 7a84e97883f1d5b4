//! haproxy on every node that is not a control plane. The name of the API resolves to each node itself: workers use their haproxy,
//! control planes their own API server.

pub(super) mod remove_haproxy;
mod run_haproxy;

use kk_artifact::Component;
use kk_config::{ControlPlaneEndpoint, Host, Role, Spec};
use kk_engine::{Facts, ProbeSpec, Question, Task, question};

use super::{kube_vip, tasks};
use crate::{
    base::{
        error::BuildError,
        findings::Findings,
        requirements::{ImageStage, Port},
    },
    capabilities::nodes,
    model::{
        capability::{Capability, Stage},
        cluster::Cluster,
        inputs::Inputs,
    },
};

/// Directory of the configuration; the same as KubeKey's.
const DIRECTORY: &str = "/etc/kubekey/haproxy";
/// The configuration.
const CONFIGURATION: &str = "/etc/kubekey/haproxy/haproxy.cfg";
/// The static pod; the same path as KubeKey's.
const MANIFEST: &str = "/etc/kubernetes/manifests/haproxy.yaml";
/// While haproxy works, it answers on this port of the loopback interface.
const HEALTH_PORT: u16 = 10262;

/// The functions `haproxy_is_loaded` and `load_haproxy`, for scripts that change the configuration or the CA.
pub(crate) const LOAD: &str = include_str!("load_haproxy.sh");

/// Whether haproxy has loaded its configuration and the CA of the cluster as they are now.
const LOADED: Question<bool> = Question::new("haproxy_loaded", "", question::yes_or_no);

/// haproxy on workers.
pub(super) struct Haproxy;

impl Capability for Haproxy {
    fn name(&self) -> &'static str {
        "balancer"
    }

    fn stage(&self) -> Stage {
        Stage::Hosts
    }

    fn images(&self, cluster: &Cluster, host: &Host) -> Vec<(ImageStage, String)> {
        let image = || (ImageStage::Node, cluster.images.of(Component::Haproxy));
        runs_on(host).then(image).into_iter().collect()
    }

    /// A kubelet that starts without the directory looks for it only every 20 s.
    fn directories(&self, _spec: &Spec) -> Vec<String> {
        vec!["/etc/kubernetes/manifests".to_owned()]
    }

    fn ports(&self, _spec: &Spec, host: &Host) -> Vec<Port> {
        let ports = [ControlPlaneEndpoint::API_SERVER_PORT, HEALTH_PORT];
        if runs_on(host) { ports.map(|port| Port::tcp(port, "haproxy")).to_vec() } else { Vec::new() }
    }

    fn asks(&self, _inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
        super::asks(host, probe);
        if runs_on(host) {
            let snippet = format!("{LOAD}if haproxy_is_loaded; then echo yes; else echo no; fi");
            probe.ask(&LOADED.with_snippet(snippet));
        }
    }

    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        if !inputs.spec.hosts.iter().any(runs_on) {
            found.adapted(
                None,
                "every node is a control plane and uses its own API server: haproxy is installed on no host",
                "a node whose API server fails is not Ready until it works again; nodes that are only workers \
                 get a haproxy",
            );
        }
        for (host, facts) in inputs.nodes().into_iter().filter(|(host, _)| runs_on(host)) {
            let sick = is_installed(facts) && inputs.has_joined(host) && inputs.state.answered;
            if let Some(why) = nodes::refused(facts).filter(|_| sick) {
                found.adapted(host, format!("its haproxy does not answer: {why}"), "kk repairs it");
            }
        }
    }

    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        Ok(tasks(inputs, vec![run_haproxy::task(inputs)?]))
    }

    fn remove(&self, inputs: &Inputs) -> Vec<Task> {
        vec![kube_vip::remove_kube_vip::of_cluster(inputs)]
    }
}

/// Requests the facts that show whether haproxy is installed.
pub(super) fn asks(host: &Host, probe: &mut ProbeSpec) {
    if host.is_node() {
        probe.files.extend([MANIFEST, CONFIGURATION].map(str::to_owned));
    }
}

/// Whether haproxy runs on a host: on workers that are not control planes.
fn runs_on(host: &Host) -> bool {
    host.is_node() && !host.has_role(&Role::ControlPlane)
}

/// Whether a previous run has begun to install it.
fn is_installed(facts: &Facts) -> bool {
    facts.files.contains_key(MANIFEST) && facts.owns(MANIFEST)
}
