//! Compares the whole API before and after a removal, also if Kubernetes was upgraded meanwhile.

use std::collections::BTreeSet;

use super::super::remove::{Dump, differences, is_explained};

/// Differences without those in other objects.
pub(super) fn unexplained(before: &Dump, after: &Dump, is_other: impl Fn(&str) -> bool) -> Vec<String> {
    let compared = |dump: &Dump| -> Dump {
        let compared = dump.iter().filter(|(name, _)| !is_other(name));
        compared.map(|(name, object)| (name.clone(), object.clone())).collect()
    };
    differences(&compared(before), &compared(after))
}

/// Whether an object belongs to one of these namespaces that stay: the namespace itself, and what Kubernetes creates in it.
pub(super) fn is_kept(object: &str, namespaces: &[String]) -> bool {
    namespaces.iter().any(|name| {
        [
            format!("Namespace /{name}"),
            format!("ConfigMap {name}/kube-root-ca.crt"),
            format!("ServiceAccount {name}/default"),
        ]
        .iter()
        .any(|kept| kept == object)
    })
}

/// Objects that the upgrade of Kubernetes changed, added or removed. An object that KubeSphere had created before the upgrade is
/// not one of them.
pub(super) fn changed_by_upgrade(before: &Dump, installed: &Dump, upgraded: &Dump) -> BTreeSet<String> {
    let all = installed.keys().chain(upgraded.keys());
    let changed = all.filter(|name| installed.get(*name) != upgraded.get(*name));
    changed.filter(|name| before.contains_key(*name) || !installed.contains_key(*name)).cloned().collect()
}

/// The objects that still have labels, annotations or finalizers of KubeSphere.
pub(super) fn marked(after: &Dump, names: &BTreeSet<String>) -> Vec<String> {
    let these = after.iter().filter(|(name, _)| names.contains(*name) && !is_explained(name));
    these
        .filter(|(_, object)| object["metadata"].to_string().contains("kubesphere.io"))
        .map(|(name, object)| format!("{name} has marks of KubeSphere: {}", object["metadata"]))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn dump(objects: &[(&str, Value)]) -> Dump {
        objects.iter().map(|(name, object)| ((*name).to_owned(), object.clone())).collect()
    }

    #[test]
    fn only_objects_that_the_upgrade_changed_may_differ_after_it() {
        let (old, new) = (json!({"spec": 1}), json!({"spec": 2}));
        let proxy = "DaemonSet kube-system/kube-proxy";
        let (role, own) = ("ClusterRole /of-kubernetes", "Deployment kubesphere-system/ks-apiserver");
        let before = dump(&[(proxy, old.clone()), ("Node /node1", old.clone())]);
        let installed = dump(&[(proxy, old.clone()), ("Node /node1", old.clone()), (own, old.clone())]);
        let upgraded = dump(&[
            (proxy, new.clone()),
            ("Node /node1", old.clone()),
            (own, new.clone()),
            (role, new.clone()),
        ]);
        let changed = changed_by_upgrade(&before, &installed, &upgraded);
        assert_eq!(changed, BTreeSet::from([proxy, role].map(str::to_owned)));

        let marked_role = json!({"metadata": {"labels": {"kubesphere.io/creator": "admin"}}});
        let after =
            dump(&[(proxy, new.clone()), ("Node /node1", new.clone()), (own, new), (role, marked_role)]);
        let found = unexplained(&before, &after, |name| changed.contains(name));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("Node /node1 was") && found[1].starts_with(own), "{found:?}");
        let found = marked(&after, &changed);
        assert!(found.len() == 1 && found[0].starts_with(role), "{found:?}");
    }

    #[test]
    fn a_kept_namespace_keeps_only_objects_of_kubernetes() {
        let kept = ["extension-gateway".to_owned()];
        for (object, expected) in [
            ("Namespace /extension-gateway", true),
            ("ServiceAccount extension-gateway/default", true),
            ("ServiceAccount extension-gateway/helm-executor.gateway", false),
            ("Namespace /extension-gateway-2", false),
        ] {
            assert_eq!(is_kept(object, &kept), expected, "{object}");
        }
    }
}
