//! Fields that are accepted, because KubeKey's files contain them, but have no effect yet. The user is warned about each.

use crate::findings::{At, Findings};
use crate::spec::Role;
use crate::yaml::{Node, Value};

/// Paths of the fields. Remove the line of a field that gets an effect.
const WITHOUT_EFFECT: &[&str] = &[
    "spec.system.ntpServers",
    "spec.system.timezone",
    "spec.system.rpms",
    "spec.system.debs",
    "spec.system.preInstall",
    "spec.system.postClusterInstall",
    "spec.system.postInstall",
    "spec.etcd.external",
    "spec.dns.dnsEtcHosts",
    "spec.dns.coredns.externalZones",
    "spec.dns.coredns.rewriteBlock",
    "spec.dns.nodelocaldns",
    "spec.kubernetes.nodelocaldns",
    "spec.kubernetes.containerRuntimeEndpoint",
    "spec.kubernetes.nodeFeatureDiscovery",
    "spec.kubernetes.kata",
    "spec.kubernetes.audit",
    "spec.kubernetes.nvidiaRuntime",
    "spec.network.kubeovn",
    "spec.network.hybridnet",
    "spec.network.multusCNI",
    "spec.storage",
    "spec.registry.dockerDataDir",
    "spec.registry.bridgeIP",
    "spec.registry.namespaceRewrite",
    "spec.kubesphere.configurations",
];

/// Adds one warning that names every field of [`WITHOUT_EFFECT`] that requests something, and role groups of the user's own. Its
/// position is the first field.
pub(crate) fn warn_of_fields_without_effect(root: &Node, out: &mut Findings<'_>) {
    let own_groups = own_groups(root);
    let paths = WITHOUT_EFFECT.iter().copied().chain(own_groups.iter().map(String::as_str));
    let found: Vec<(&str, At<'_>)> = paths.filter_map(|path| Some((path, asked_for(root, path)?))).collect();
    let Some((_, first)) = found.first() else { return };
    let names = found.iter().map(|(path, _)| *path).collect::<Vec<_>>().join(", ");
    out.warning(*first, format!("without effect yet: {names}"), "kk ignores them");
}

/// Paths of the role groups that are used only for scripts.
fn own_groups(root: &Node) -> Vec<String> {
    let groups = root.get("spec").and_then(|spec| spec.get("roleGroups"));
    let Some(Value::Map(groups)) = groups.map(|node| &node.value) else { return Vec::new() };
    let own = |name: &&str| matches!(Role::from_group(name), Role::Custom(_));
    groups
        .iter()
        .map(|(key, _)| key.text.as_str())
        .filter(own)
        .map(|name| format!("spec.roleGroups.{name}"))
        .collect()
}

fn asked_for<'a>(root: &'a Node, path: &str) -> Option<At<'a>> {
    let node = path.split('.').try_fold(root, Node::get)?;
    asks_for_something(node).then(|| path.split('.').fold(At::root(root), At::key))
}

/// `false` for values that mean "no": nothing, false, and collections of such values.
fn asks_for_something(node: &Node) -> bool {
    match &node.value {
        Value::Scalar { text, .. } => !node.is_null() && node.as_bool() != Some(false) && !text.is_empty(),
        Value::List(items) => items.iter().any(asks_for_something),
        Value::Map(entries) => entries.iter().any(|(_, node)| asks_for_something(node)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml;

    #[test]
    fn every_path_is_a_field_that_a_file_can_have() {
        let full = yaml::parse(include_str!("../../tests/kubekey-full.yaml"));
        for path in WITHOUT_EFFECT {
            assert!(asked_for(&full.documents[0].root, path).is_some(), "{path}");
        }
    }

    #[test]
    fn saying_no_is_not_asking_for_something() {
        let parsed =
            yaml::parse("spec: {storage: {openebs: {basePath: ''}}, kubesphere: {configurations: ''}}");
        for path in ["spec.storage", "spec.kubesphere.configurations"] {
            assert!(asked_for(&parsed.documents[0].root, path).is_none(), "{path}");
        }
    }
}
