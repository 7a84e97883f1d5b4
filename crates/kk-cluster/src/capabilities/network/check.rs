//! Conflicts with the plugin of the file: another plugin that kk installed, and another network on a new node.

use kk_config::{Host, Role};
use kk_engine::ProbeSpec;

use super::INSTALLED;
use crate::{
    base::{
        findings::Findings,
        host_layout::{KUBELET_CONF, NOTES},
    },
    model::{capability::Capability, inputs::Inputs},
};

/// The directory in which the runtime searches for the networks of pods.
const CONFIGURATIONS: &str = "/etc/cni/net.d";

/// Requests the facts for the findings.
pub(super) fn asks(host: &Host, probe: &mut ProbeSpec) {
    probe.files.insert(format!("{CONFIGURATIONS}/*"));
    if host.has_role(&Role::ControlPlane) {
        probe.files.extend(INSTALLED.map(|(plugin, _)| note(plugin)));
    }
}

/// The note of a plugin, which contains the state that was last applied.
pub(super) fn note(plugin: &str) -> String {
    format!("{NOTES}/{plugin}.yaml")
}

/// The control planes on which a plugin was applied.
fn applied_on<'a>(inputs: &Inputs<'a>, plugin: &str) -> Vec<&'a str> {
    let note = note(plugin);
    let has_note = |host: &&Host| inputs.facts(host).is_some_and(|facts| facts.files.contains_key(&note));
    inputs.spec.control_planes().into_iter().filter(has_note).map(|host| host.name.as_str()).collect()
}

/// The plugins that kk installed, whatever the file specifies. A delete probes no files, but the ownership record lists the
/// notes, too.
pub(super) fn installed(inputs: &Inputs) -> impl Iterator<Item = &'static dyn Capability> {
    let was_applied = |plugin| inputs.answered().iter().any(|(_, facts)| facts.owns(&note(plugin)));
    INSTALLED.into_iter().filter(move |(plugin, _)| was_applied(plugin)).map(|(_, capability)| capability)
}

/// An installed plugin cannot be replaced: its objects would remain in the cluster, and with two plugins the pods are in two
/// networks.
pub(super) fn refuse_another(inputs: &Inputs, plugin: &str, found: &mut Findings) {
    for (installed, _) in INSTALLED.into_iter().filter(|(installed, _)| *installed != plugin) {
        let hosts = applied_on(inputs, installed);
        if !hosts.is_empty() {
            found.error(
                None,
                format!("the network plugin of the cluster is {installed}, but the file sets {plugin}"),
                format!(
                    "revert spec.network.plugin: kk does not replace {installed} in a running cluster; if \
                     you have replaced it yourself, remove {NOTES}/{installed}.* on {}",
                    hosts.join(", ")
                ),
            );
        }
    }
}

/// If there is a CNI configuration before the plugin writes its own, the runtime puts pods into another network.
pub(super) fn warn_of_other_networks(inputs: &Inputs, plugin: &str, own: &str, found: &mut Findings) {
    for (host, facts) in inputs.nodes() {
        if facts.files.contains_key(KUBELET_CONF) {
            continue;
        }
        let others: Vec<&str> = facts
            .files
            .keys()
            .filter_map(|path| path.strip_prefix(CONFIGURATIONS)?.strip_prefix('/'))
            .filter(|name| *name != own)
            .filter(|name| [".conf", ".conflist", ".json"].iter().any(|end| name.ends_with(end)))
            .collect();
        if !others.is_empty() {
            found.warning(
                host,
                format!("{CONFIGURATIONS} contains another network: {}", others.join(", ")),
                format!("move it away; otherwise pods may use that network before {plugin} runs"),
            );
        }
    }
}
