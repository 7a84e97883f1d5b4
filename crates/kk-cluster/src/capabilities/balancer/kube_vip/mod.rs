//! kube-vip on control planes: one of them has the address of the API, by ARP, or all of them announce it to routers, by BGP.
//!
//! The static pod is written when the API server of the control plane runs, so kube-vip can use the administrator's kubeconfig
//! from the start: until then, the name of the API resolves to a control plane.

pub(super) mod remove_kube_vip;
mod run_kube_vip;

use kk_artifact::Component;
use kk_config::{Balancer, Host, Role};
use kk_engine::{Facts, ProbeSpec, Question, Task, question};

use super::tasks;
use crate::{
    base::{error::BuildError, findings::Findings, requirements::ImageStage, shell::script},
    model::{
        capability::{Capability, Stage},
        cluster::Cluster,
        inputs::Inputs,
    },
};

/// The static pod; the same path as KubeKey's.
pub(crate) const MANIFEST: &str = "/etc/kubernetes/manifests/kube-vip.yaml";

/// The copy of the static pod from which a removal reads the address of kube-vip.
const REMOVED: &str = "/etc/kubernetes/kubekey/removed-kube-vip.yaml";

/// Restarts kube-vip on `$node`, which then reads its kubeconfig.
pub(crate) const RESTART: &str = include_str!("restart_kube_vip.sh");

/// The report of a control plane about the address of kube-vip: the interface with the host's internal address, whether the
/// address is in the network of that interface, and whether another host has the address.
pub(crate) const VIP: Question<Vec<String>> = Question::new("kube_vip_address", "", question::lines);

/// Whether the running kube-vip has read an older kubeconfig than the current one.
pub(crate) const STALE: Question<bool> = Question::new("kube_vip_stale", "", question::yes_or_no);

/// kube-vip on control planes.
pub(super) struct KubeVip;

impl Capability for KubeVip {
    fn name(&self) -> &'static str {
        "balancer"
    }

    fn stage(&self) -> Stage {
        Stage::Hosts
    }

    fn images(&self, cluster: &Cluster, host: &Host) -> Vec<(ImageStage, String)> {
        let image = || (ImageStage::Node, cluster.images.of(Component::KubeVip));
        host.has_role(&Role::ControlPlane).then(image).into_iter().collect()
    }

    fn asks(&self, inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
        super::asks(host, probe);
        if host.has_role(&Role::ControlPlane) {
            let address = host.internal_address.to_string();
            let virtual_address = inputs.endpoint().wanted().map_or_else(String::new, |one| one.to_string());
            let variables = [("address", address.as_str()), ("vip", &virtual_address), ("node", &host.name)];
            probe.ask(&VIP.with_snippet(script(&variables, include_str!("look_at_address.sh"))));
            probe.ask(&STALE.with_snippet(script(&variables, include_str!("is_stale.sh"))));
        }
    }

    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        let Balancer::KubeVip(settings) = &inputs.spec.control_plane_endpoint.balancer else { return };
        let Some(address) = inputs.endpoint().wanted() else { return };
        let runs = inputs.answered().iter().any(|(_, facts)| is_installed(facts));
        for (host, facts) in inputs.control_planes() {
            found.unanswered(host, &facts.answer(&VIP), "which network interface has its internal address");
            let Some(lines) = facts.answer(&VIP).answered() else { continue };
            let says = |word: &str| lines.iter().any(|line| line == word);
            if settings.interface.is_none() && settings.bgp.is_none() && interface_of(facts).is_none() {
                found.error(
                    host,
                    format!("no network interface has its internal address {}", host.internal_address),
                    "set spec.controlPlaneEndpoint.kubevip.interface",
                );
            }
            if settings.bgp.is_none() && says("route: via") {
                found.error(
                    host,
                    format!(
                        "the address {address} of kube-vip is not in the network of {}",
                        host.internal_address
                    ),
                    "give an address of this network as spec.controlPlaneEndpoint.address, or use mode BGP",
                );
            }
            if says("state: taken") && !runs {
                found.error(
                    host,
                    format!("another host has the address {address} of kube-vip"),
                    "set spec.controlPlaneEndpoint.address to a free address",
                );
            }
        }
    }

    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        Ok(tasks(inputs, vec![run_kube_vip::task(inputs)?]))
    }

    fn remove(&self, inputs: &Inputs) -> Vec<Task> {
        vec![remove_kube_vip::of_cluster(inputs)]
    }
}

/// Requests the facts that show whether kube-vip is installed.
pub(super) fn asks(host: &Host, probe: &mut ProbeSpec) {
    if host.is_node() {
        probe.files.extend([MANIFEST, REMOVED].map(str::to_owned));
    }
}

/// Whether an earlier run has begun to install it, or has not finished its removal.
pub(crate) fn is_installed(facts: &Facts) -> bool {
    [MANIFEST, REMOVED].iter().any(|path| facts.files.contains_key(*path)) && facts.owns(MANIFEST)
}

/// The network interface with the internal address of a control plane.
fn interface_of(facts: &Facts) -> Option<String> {
    let lines = facts.answer(&VIP).answered()?;
    lines
        .iter()
        .find_map(|line| line.strip_prefix("interface: "))
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
}
