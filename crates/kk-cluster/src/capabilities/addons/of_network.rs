//! Addons of the phase `network`: they connect pods, or filter their traffic, so they are installed before nodes are Ready.

use kk_config::{AddonPhase, Host, Role, Spec};
use kk_engine::{Action, HostWork, ProbeSpec, Task, actions::File};

use super::{check, install_addon, state};
use crate::{
    base::{error::BuildError, findings::Findings, host_layout::NETWORK_ADDONS, slots, supply::Wanted},
    capabilities::network,
    model::{
        capability::{Capability, Stage},
        inputs::Inputs,
    },
};

/// The content of [`NETWORK_ADDONS`].
pub(super) const MARK: &str =
    "# Written by kk: an addon of this cluster connects pods or filters their traffic.\n";

/// The addons of this phase.
pub(crate) struct NetworkAddons;

/// Whether the file has such addons.
pub(crate) fn has_any(spec: &Spec) -> bool {
    network::own_release(spec).is_some() || spec.addons.iter().any(kk_config::Addon::is_of_network)
}

fn wanted<'a>(inputs: &'a Inputs) -> impl Iterator<Item = &'a Wanted> {
    inputs.addons.iter().filter(|addon| addon.addon.is_of_network())
}

impl Capability for NetworkAddons {
    fn name(&self) -> &'static str {
        "network-addons"
    }

    fn stage(&self) -> Stage {
        Stage::AddOns
    }

    fn asks(&self, inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
        if host.has_role(&Role::ControlPlane) {
            state::asks(inputs, host, probe);
        }
    }

    fn findings(&self, inputs: &Inputs, found: &mut Findings) {
        if inputs.command.is_create() {
            check::findings(inputs, AddonPhase::Network, found);
        }
    }

    /// The links of plugins that kk does not install itself.
    fn interfaces(&self) -> &'static [&'static str] {
        network::INTERFACES_OF_OTHERS
    }

    /// They run in the background, because kube-proxy and CoreDNS are applied at the same time: a chart may wait for pods that
    /// need Services.
    fn install(&self, inputs: &Inputs) -> Result<Vec<Task>, BuildError> {
        if !inputs.command.is_create() {
            return Ok(Vec::new());
        }
        let mut tasks = Vec::new();
        let mut previous = None;
        for addon in wanted(inputs) {
            let name = &addon.addon.name;
            let mut work = before_nodes_are_ready(inputs).provides(slots::network_addon_slot(name));
            let mut before: Vec<Box<dyn Action>> = Vec::new();
            // Before the mark: a mark without a note would belong to a network that kk does not manage.
            if addon.plugin.is_some() {
                before.push(Box::new(note(addon)));
            }
            match previous.replace(name) {
                Some(previous) => work = work.needs(slots::network_addon_slot(previous)),
                None => before.push(Box::new(mark())),
            }
            tasks.push(install_addon::with(inputs, addon, before, work).background());
        }
        Ok(tasks)
    }

    /// The file may no longer list such addons. The mark shows that the cluster had some.
    fn remove(&self, inputs: &Inputs) -> Vec<Task> {
        let had_any = || inputs.answered().iter().any(|(_, facts)| facts.owns(NETWORK_ADDONS));
        let removes = has_any(inputs.spec) || network::may_be_of_others(inputs.spec) || had_any();
        removes.then(|| network::remove_others(inputs)).into_iter().collect()
    }
}

/// The note of the network plugin. It is written before helm starts, because helm may fail and leave a part of the plugin.
fn note(addon: &Wanted) -> File {
    let values = addon.values.as_deref().unwrap_or_default();
    File::text(network::note(&addon.addon.name), String::from_utf8_lossy(values)).mode(0o600)
}

/// Waits for the same slots as manifests: a kubelet that has not read the Services yet refuses a pod, and pulling an image takes
/// time.
fn before_nodes_are_ready(inputs: &Inputs) -> HostWork {
    let mut work = HostWork::default().needs(slots::initialised_slot()).needs(slots::nodes_take_pods_slot());
    for (node, _) in inputs.nodes() {
        // Pods in the network of their node keep the names in /etc/hosts from their start.
        work = work.after(slots::api_name_slot(&node.name));
        if !inputs.options.skip_pull_images {
            work = work.after(slots::node_images_slot(&node.name));
        }
    }
    work
}

/// With this mark, a delete removes the traces of the addons on nodes, even if the file no longer lists the addons.
fn mark() -> File {
    File::text(NETWORK_ADDONS, MARK).mode(0o600)
}
