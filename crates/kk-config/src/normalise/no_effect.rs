//! Fields that load, because KubeKey's files have them, and do nothing yet. The user is told of each.

use crate::findings::{At, Findings};
use crate::yaml::{Node, Value};

/// Paths of the fields. When a field begins to work, its line goes.
const WITHOUT_EFFECT: &[&str] = &[
    "metadata.namespace",
    "metadata.labels",
    "metadata.annotations",
    "spec.roleGroups.registry",
    "spec.controlPlaneEndpoint.kubevip",
    "spec.system.ntpServers",
    "spec.system.timezone",
    "spec.system.rpms",
    "spec.system.debs",
    "spec.system.preInstall",
    "spec.system.postClusterInstall",
    "spec.system.postInstall",
    "spec.etcd.external",
    "spec.etcd.backupDir",
    "spec.etcd.backupPeriod",
    "spec.etcd.keepBackupNumber",
    "spec.etcd.backupScript",
    "spec.dns.dnsEtcHosts",
    "spec.dns.coredns.externalZones",
    "spec.dns.coredns.rewriteBlock",
    "spec.dns.nodelocaldns",
    "spec.kubernetes.autoRenewCerts",
    "spec.kubernetes.nodelocaldns",
    "spec.kubernetes.containerRuntimeEndpoint",
    "spec.kubernetes.nodeFeatureDiscovery",
    "spec.kubernetes.kata",
    "spec.kubernetes.audit",
    "spec.kubernetes.nvidiaRuntime",
    "spec.network.calico",
    "spec.network.flannel.directRouting",
    "spec.network.kubeovn",
    "spec.network.hybridnet",
    "spec.network.multusCNI",
    "spec.storage",
    "spec.registry.type",
    "spec.registry.dockerDataDir",
    "spec.registry.registryDataDir",
    "spec.registry.bridgeIP",
    "spec.registry.namespaceRewrite",
    "spec.addons",
    "spec.kubesphere",
];

/// Adds one warning that names every field of [`WITHOUT_EFFECT`] that asks for something, and the KubeSphere
/// document if there is one. It stands at the first field.
pub(crate) fn warn_of_fields_without_effect(
    root: &Node,
    kubesphere_document: Option<At<'_>>,
    out: &mut Findings<'_>,
) {
    let mut found: Vec<(&str, At<'_>)> =
        WITHOUT_EFFECT.iter().filter_map(|path| Some((*path, asked_for(root, path)?))).collect();
    found.extend(kubesphere_document.map(|at| ("the ClusterConfiguration document", at)));
    let Some((_, first)) = found.first() else { return };
    let names = found.iter().map(|(path, _)| *path).collect::<Vec<_>>().join(", ");
    out.warning(
        *first,
        format!("without effect yet: {names}"),
        "the cluster is made as if the file did not have them",
    );
}

fn asked_for<'a>(root: &'a Node, path: &str) -> Option<At<'a>> {
    let node = path.split('.').try_fold(root, |node, key| node.get(key))?;
    asks_for_something(node).then(|| At::root(node))
}

/// False for what amounts to "no": nothing, false, and collections of such.
fn asks_for_something(node: &Node) -> bool {
    match &node.value {
        Value::Scalar { text, .. } => !node.is_null() && node.as_bool() != Some(false) && !text.is_empty(),
        Value::List(items) => items.iter().any(asks_for_something),
        Value::Map(entries) => entries.iter().any(|(_, node)| asks_for_something(node)),
    }
}
