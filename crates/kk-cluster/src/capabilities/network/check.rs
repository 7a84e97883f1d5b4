//! Conflicts with the plugin of the file: another plugin that kk installed, and another network on a new node.

use kk_config::{Host, Role};
use kk_engine::{Facts, ProbeSpec};

use super::INSTALLED;
use crate::{
    base::{
        findings::Findings,
        host_layout::{KUBELET_CONF, NETWORK_ADDONS, NOTES},
    },
    model::{capability::Capability, inputs::Inputs},
};

/// The directory in which the runtime searches for the networks of pods.
const CONFIGURATIONS: &str = "/etc/cni/net.d";
/// Parts of the names of configurations that belong to container tools, or to plugins that only call another one. They do not
/// show that the cluster has a network.
const NO_NETWORK_OF_PODS: [&str; 6] = ["podman", "crio", "containerd-net", "nerdctl", "loopback", "multus"];

/// Requests the facts for the findings.
pub(super) fn asks(host: &Host, probe: &mut ProbeSpec) {
    probe.files.insert(format!("{CONFIGURATIONS}/*"));
    if host.has_role(&Role::ControlPlane) {
        probe.files.extend(INSTALLED.map(|(plugin, _)| note(plugin)));
        probe.files.insert(NETWORK_ADDONS.to_owned());
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

/// A plugin that kk has not installed cannot be replaced, either: an addon or the user installed it while the file had
/// `plugin: none`. `own` is the configuration that the plugin of the file writes.
pub(super) fn refuse_foreign(inputs: &Inputs, plugin: &str, own: &str, found: &mut Findings) {
    // With an addon in the file that connects pods, or filters their traffic, both may belong to the file.
    let may_belong = inputs.spec.addons.iter().any(kk_config::Addon::is_of_network);
    let has_note = INSTALLED.iter().any(|(installed, _)| !applied_on(inputs, installed).is_empty());
    // The note may be on a control plane that does not answer.
    let all_answer = inputs.spec.control_planes().into_iter().all(|host| inputs.facts(host).is_some());
    if may_belong || has_note || !all_answer || !inputs.is_initialised() {
        return;
    }
    let nodes = inputs.nodes();
    let joined = nodes.iter().filter(|(_, facts)| facts.files.contains_key(KUBELET_CONF));
    let joined: Vec<(&str, Vec<&str>)> =
        joined.map(|(host, facts)| (host.name.as_str(), configurations(facts).collect())).collect();
    let marked: Vec<&str> = nodes
        .iter()
        .filter(|(_, facts)| facts.files.contains_key(NETWORK_ADDONS))
        .map(|(host, _)| host.name.as_str())
        .collect();
    let mut message =
        format!("the file sets the network plugin {plugin}, but the cluster already has a network");
    let revert = "set spec.network.plugin to none: kk does not replace the network of a running cluster";
    if !marked.is_empty() {
        message += ": an addon of the phase network installed it";
        let hint = format!(
            "{revert}; if you have removed that addon and its files on all nodes, remove {NETWORK_ADDONS} on {}",
            marked.join(", ")
        );
        found.error(None, message, hint);
    } else if !joined.iter().any(|(_, files)| files.contains(&own)) {
        let is_foreign = |name: &&&str| !NO_NETWORK_OF_PODS.iter().any(|part| name.contains(part));
        for (host, files) in joined {
            if let Some(file) = files.iter().find(is_foreign) {
                let path = format!("{CONFIGURATIONS}/{file}");
                let hint = format!("{revert}; if you have removed that network, remove {path} on {host}");
                found.error(None, format!("{message}: {host} has {path}"), hint);
            }
        }
    }
}

/// The names of CNI configurations that the runtime reads.
fn configurations(facts: &Facts) -> impl Iterator<Item = &str> {
    facts
        .files
        .keys()
        .filter_map(|path| path.strip_prefix(CONFIGURATIONS)?.strip_prefix('/'))
        .filter(|name| [".conf", ".conflist", ".json"].iter().any(|end| name.ends_with(end)))
}

/// If there is a CNI configuration before the plugin writes its own, the runtime puts pods into another network.
pub(super) fn warn_of_other_networks(inputs: &Inputs, plugin: &str, own: &str, found: &mut Findings) {
    for (host, facts) in inputs.nodes() {
        if facts.files.contains_key(KUBELET_CONF) {
            continue;
        }
        let others: Vec<&str> = configurations(facts).filter(|name| *name != own).collect();
        if !others.is_empty() {
            found.warning(
                host,
                format!("{CONFIGURATIONS} contains another network: {}", others.join(", ")),
                format!("move it away; otherwise pods may use that network before {plugin} runs"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use kk_config::NetworkPlugin;
    use kk_engine::{FileFact, Severity};

    use super::note;
    use crate::{
        base::{
            cluster_state::INITIALISED,
            host_layout::{KUBELET_CONF, NETWORK_ADDONS},
        },
        testing,
    };

    #[tokio::test]
    async fn a_network_that_kk_did_not_install_is_not_replaced() {
        let (calico, flannel) = ("/etc/cni/net.d/10-calico.conflist", "/etc/cni/net.d/10-flannel.conflist");
        let flannel_note = note("flannel");
        for (initialised, files, refused) in [
            (true, &[KUBELET_CONF, NETWORK_ADDONS][..], true),
            (true, &[KUBELET_CONF, NETWORK_ADDONS, flannel], true),
            (true, &[KUBELET_CONF, calico], true),
            (true, &[KUBELET_CONF], false),
            (true, &[KUBELET_CONF, "/etc/cni/net.d/87-podman.conflist"], false),
            (true, &[KUBELET_CONF, calico, flannel], false),
            (true, &[KUBELET_CONF, NETWORK_ADDONS, calico, &flannel_note], false),
            (true, &[calico], false),
            (false, &[NETWORK_ADDONS, calico], false),
        ] {
            let mut spec = testing::sample("all-in-one.yaml");
            let mut probed = testing::fresh(&spec);
            let facts = probed.facts.values_mut().next().unwrap();
            if initialised {
                facts.reply(&INITIALISED, "yes");
            }
            facts.files.extend(files.iter().map(|file| ((*file).to_owned(), FileFact::default())));
            let directory = tempfile::tempdir().unwrap();
            let errors = async |spec: &kk_config::Spec| {
                let session = testing::session(spec.clone(), directory.path());
                let found = session.plan_create(&probed).await.unwrap().findings;
                let network = found.into_iter().filter(|one| one.message.contains("already has a network"));
                network.filter(|one| one.severity == Severity::Error).count()
            };
            assert_eq!(errors(&spec).await, usize::from(refused), "{initialised} {files:?}");
            spec.network.plugin = NetworkPlugin::None;
            assert_eq!(errors(&spec).await, 0, "{initialised} {files:?}");
        }
    }
}
