//! Moves fields of earlier KubeKey versions to their current position in the tree, or drops them, and warns about each.
//!
//! The rows are the fields that KubeKey 1.0 to 3.1 declared or wrote into its template, and that 3.1.12 does not have. A moved
//! field keeps its position, so later errors about its value point to the line of the user.

use crate::findings::Findings;
use crate::v1alpha2::API_VERSION;
use crate::yaml::{Key, Node, Span, Value};

/// The `apiVersion` of KubeKey 1.
const FIRST_VERSION: &str = "kubekey.kubesphere.io/v1alpha1";

/// The current form of a field.
enum Now {
    /// It has this path, with the same meaning.
    Moved(&'static str),
    /// It has this name in the same map, with the same meaning.
    Renamed(&'static str),
    /// It has no effect. The text states what to do instead.
    Gone(&'static str),
}
use Now::{Gone, Moved, Renamed};

/// Paths of the fields. `[]` stands for each item of a list.
const FIELDS: [(&str, Now); 22] = [
    ("spec.hosts.[].id", Gone("remove it: a host is identified by its `name`")),
    (
        "spec.kubernetes.imageRepo",
        Gone(
            "remove it; `spec.registry.namespaceOverride` sets the namespace of images in a private registry",
        ),
    ),
    ("spec.kubernetes.etcdBackupDir", Moved("spec.etcd.backupDir")),
    ("spec.kubernetes.etcdBackupPeriod", Moved("spec.etcd.backupPeriod")),
    ("spec.kubernetes.keepBackupNumber", Moved("spec.etcd.keepBackupNumber")),
    ("spec.kubernetes.etcdBackupScript", Moved("spec.etcd.backupScript")),
    ("spec.network.enableMultusCNI", Moved("spec.network.multusCNI.enabled")),
    ("spec.network.calico.enableTypha", Moved("spec.network.calico.typha.enabled")),
    ("spec.network.flannel.backend.directRouting", Moved("spec.network.flannel.directRouting")),
    ("spec.network.kubeovn.networkType", Moved("spec.network.kubeovn.kube-ovn-controller.networkType")),
    (
        "spec.network.kubeovn.vlanInterfaceName",
        Moved("spec.network.kubeovn.kube-ovn-controller.vlanInterfaceName"),
    ),
    ("spec.network.kubeovn.vlanID", Moved("spec.network.kubeovn.kube-ovn-controller.vlanID")),
    ("spec.network.kubeovn.iface", Moved("spec.network.kubeovn.kube-ovn-cni.iface")),
    ("spec.network.kubeovn.enableMirror", Moved("spec.network.kubeovn.kube-ovn-cni.enableMirror")),
    ("spec.network.kubeovn.hwOffload", Moved("spec.network.kubeovn.ovs-ovn.hwOffload")),
    ("spec.network.kubeovn.dpdkMode", Moved("spec.network.kubeovn.dpdk.dpdkMode")),
    ("spec.network.kubeovn.dpdkVersion", Moved("spec.network.kubeovn.dpdk.dpdkVersion")),
    ("spec.registry.dataRoot", Moved("spec.registry.containerdDataDir")),
    ("spec.registry.plainHTTP", Gone("set `plainHTTP` of the registry in `spec.registry.auths`")),
    ("spec.system.preInstall.[].shell", Renamed("bash")),
    ("spec.system.postClusterInstall.[].shell", Renamed("bash")),
    ("spec.system.postInstall.[].shell", Renamed("bash")),
];

/// Converts the document of a Cluster to its current form.
pub(crate) fn translate(root: &mut Node, out: &mut Findings<'_>) {
    if root.get("apiVersion").and_then(Node::text) == Some(FIRST_VERSION) {
        translate_first_version(root, out);
    }
    carry_over_plain_http(root, out);
    for (path, now) in &FIELDS {
        let (parent, name) = path.rsplit_once('.').expect("every path has a parent");
        let mut found = Vec::new();
        at_path(root, parent, &mut |map| {
            let Some((key, node)) = map.take(name) else { return };
            match now {
                Renamed(to) if map.get(to).is_some() => warn_twice(path, to, key.span, out),
                Renamed(to) => {
                    warn_moved(path, to, key.span, out);
                    map.put(Key { text: (*to).to_owned(), span: key.span }, node);
                }
                Moved(_) | Gone(_) => found.push((key, node)),
            }
        });
        for (key, node) in found {
            match now {
                Moved(to) if root.at(to).is_some() => warn_twice(path, to, key.span, out),
                Moved(to) => {
                    warn_moved(path, to, key.span, out);
                    insert(root, to, key.span, node);
                }
                Gone(hint) => {
                    let message =
                        format!("`{}` is a field of an earlier KubeKey, without effect", shown(path));
                    out.warning(key.span, message, *hint);
                }
                Renamed(_) => {}
            }
        }
    }
    // A map that only held moved fields.
    at_path(root, "spec.network.flannel", &mut |flannel| {
        if flannel
            .get("backend")
            .is_some_and(|backend| matches!(&backend.value, Value::Map(all) if all.is_empty()))
        {
            flannel.take("backend");
        }
    });
}

fn warn_moved(from: &str, to: &str, at: Span, out: &mut Findings<'_>) {
    let message = format!("`{}` is the name of an earlier KubeKey: kk reads it as `{to}`", shown(from));
    out.warning(at, message, format!("write `{to}`"));
}

fn warn_twice(from: &str, to: &str, at: Span, out: &mut Findings<'_>) {
    let message = format!("without effect: `{}`, the earlier name of `{to}`, which is set, too", shown(from));
    out.warning(at, message, "remove it");
}

/// A path as messages show it.
fn shown(path: &str) -> String {
    path.replace(".[]", "[]")
}

/// `v1alpha1` differs from `v1alpha2` in these points, and in the rows of [`FIELDS`].
fn translate_first_version(root: &mut Node, out: &mut Findings<'_>) {
    let Some(version) = root.get_mut("apiVersion") else { return };
    let message = "v1alpha1 is the format of KubeKey 1: kk reads it as v1alpha2";
    out.warning(version.span, message, format!("write `apiVersion: {API_VERSION}`"));
    version.value = Value::Scalar { text: API_VERSION.to_owned(), plain: true };
    // Ports were texts.
    for path in ["spec.controlPlaneEndpoint", "spec.hosts.[]"] {
        at_path(root, path, &mut |map| {
            if let Some(Node { value: Value::Scalar { plain, .. }, .. }) = map.get_mut("port") {
                *plain = true;
            }
        });
    }
    // The name of the cluster was its DNS domain, too.
    let Some((key, name)) = root.at("spec.kubernetes").and_then(|map| map.entry("clusterName")) else {
        return;
    };
    let is_default = name.is_null() || matches!(name.text(), None | Some("" | "cluster.local"));
    if is_default || root.at("spec.kubernetes.dnsDomain").is_some() {
        return;
    }
    let (span, name) = (key.span, name.clone());
    let message =
        "in v1alpha1 `clusterName` is the DNS domain of the cluster, too: kk sets `dnsDomain` to it";
    out.warning(span, message, "write `dnsDomain` when you change the apiVersion");
    insert(root, "spec.kubernetes.dnsDomain", span, name);
}

/// `registry.plainHTTP` applied to the private registry.
fn carry_over_plain_http(root: &mut Node, out: &mut Findings<'_>) {
    let Some(registry) = root.at("spec.registry") else { return };
    let Some((key, plain)) = registry.entry("plainHTTP") else { return };
    let private = registry.get("privateRegistry").and_then(Node::text).unwrap_or_default();
    let host = private.split('/').next().unwrap_or_default().to_owned();
    if plain.as_bool() != Some(true) || host.is_empty() {
        return;
    }
    let (span, plain) = (key.span, plain.clone());
    let path = ["spec", "registry", "auths", &host, "plainHTTP"];
    if walk(root, &path).is_some() {
        return;
    }
    at_path(root, "spec.registry", &mut |registry| drop(registry.take("plainHTTP")));
    let message = format!(
        "`spec.registry.plainHTTP` is the name of an earlier KubeKey: kk reads it as `plainHTTP` of `{host}` in \
         `spec.registry.auths`"
    );
    out.warning(span, message, format!("write `auths: {{\"{host}\": {{plainHTTP: true}}}}`"));
    insert_at(root, &path, span, plain);
}

/// Calls the function with each node at a path.
fn at_path(node: &mut Node, path: &str, change: &mut dyn FnMut(&mut Node)) {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let mut below = |node: &mut Node| match rest {
        Some(rest) => at_path(node, rest, change),
        None => change(node),
    };
    match (&mut node.value, first) {
        (Value::List(items), "[]") => items.iter_mut().for_each(below),
        (Value::Map(_), key) => {
            if let Some(node) = node.get_mut(key) {
                below(node);
            }
        }
        _ => {}
    }
}

fn walk<'a>(node: &'a Node, path: &[&str]) -> Option<&'a Node> {
    path.iter().try_fold(node, |node, key| node.get(key))
}

fn insert(root: &mut Node, path: &str, at: Span, node: Node) {
    insert_at(root, &path.split('.').collect::<Vec<_>>(), at, node);
}

/// Inserts a value, and the maps above it that are missing. If a value above it is not a map, that is reported later.
fn insert_at(mut map: &mut Node, path: &[&str], at: Span, node: Node) {
    let Some((name, above)) = path.split_last() else { return };
    let key = |text: &str| Key { text: text.to_owned(), span: at };
    for step in above {
        if map.get(step).is_none_or(Node::is_null) {
            map.take(step);
            map.put(key(step), Node { span: at, value: Value::Map(Vec::new()) });
        }
        let Some(next) = map.get_mut(step) else { return };
        map = next;
    }
    map.put(key(name), node);
}
