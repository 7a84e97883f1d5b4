//! No network plugin of kk: an addon or the user installs a plugin.

use kk_config::Host;
use kk_engine::{ProbeSpec, Task};

use super::check;
use crate::{
    base::{findings::Findings, requirements::Ready},
    model::{
        capability::{Capability, Stage},
        cluster::Cluster,
        inputs::Inputs,
    },
};

/// No plugin of kk. Without an addon of the phase `network`, no node can become Ready.
pub(super) struct NoPlugin;

impl Capability for NoPlugin {
    fn name(&self) -> &'static str {
        "network"
    }

    fn stage(&self) -> Stage {
        Stage::AddOns
    }

    /// The interfaces of plugins that users often install.
    fn interfaces(&self) -> &'static [&'static str] {
        &["cni0", "flannel*", "veth*", "cali*", "tunl*", "vxlan.calico", "cilium*", "lxc*"]
    }

    fn asks(&self, _inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
        check::asks(host, probe);
    }

    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        check::refuse_another(inputs, "none", found);
    }

    fn ready(&self, cluster: &Cluster) -> Vec<Ready> {
        if cluster.spec.addons.iter().any(kk_config::Addon::is_of_network) {
            return Vec::new();
        }
        vec![Ready::Never(
            "without a network plugin nodes do not become ready; install yours now, or list it in spec.addons with phase: network",
        )]
    }

    /// Plugins that kk installed are removed with the cluster, even if the file no longer names them.
    fn remove(&self, inputs: &Inputs) -> Vec<Task> {
        check::installed(inputs).flat_map(|plugin| plugin.remove(inputs)).collect()
    }
}
