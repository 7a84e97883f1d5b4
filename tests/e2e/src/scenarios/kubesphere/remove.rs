//! KubeSphere is installed into a cluster with workloads and removed again: the whole API is as before.
//!
//! The stand-in of its controller imitates the harmful effects of the real one: `tests/lab/ks-payload/README.md`.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Lab, NAMESPACE, PATIENCE, with_installer};
use crate::checks;
use crate::context::Context;
use crate::kk::KkRun;

/// Kinds that change by themselves: objects of Kubernetes' own controllers, and signs of life.
const MOVING: [&str; 13] = [
    "componentstatuses",
    "controllerrevisions.apps",
    "csistoragecapacities.storage.k8s.io",
    "endpoints",
    "endpointslices.discovery.k8s.io",
    "events",
    "events.events.k8s.io",
    "ipaddresses.networking.k8s.io",
    "leases.coordination.k8s.io",
    "nodes.metrics.k8s.io",
    "pods",
    "pods.metrics.k8s.io",
    "replicasets.apps",
];

/// Differences that are allowed after a removal: the beginning of an object, and why.
const EXCEPTIONS: [(&str, &str); 12] = [
    ("Namespace /kubesphere-system", "kk deploys the operator there, and it stays"),
    ("ConfigMap kubesphere-system/kube-root-ca.crt", "Kubernetes makes it in each namespace"),
    ("ServiceAccount kubesphere-system/", "that of the operator, and Kubernetes' own"),
    ("Deployment kubesphere-system/ks-installer", "the operator"),
    ("Service kubesphere-system/ks-installer", "the operator"),
    ("Role kubesphere-system/ks-installer", "the operator's rights"),
    ("RoleBinding kubesphere-system/ks-installer", "the operator's rights"),
    ("ClusterRole /ks-installer", "the operator's rights"),
    ("ClusterRoleBinding /ks-installer", "the operator's rights"),
    ("CustomResourceDefinition /clusterconfigurations.installer.kubesphere.io", "the operator's kind"),
    ("APIService /v1alpha1.installer.kubesphere.io", "the API server shows the group of that kind"),
    ("Secret kubesphere-system/", "passwords and certificates stay, unless dataPolicy says otherwise"),
];

/// The namespace of a user.
pub(super) const PROJECT: &str = "project";
/// Of a whole KubeSphere.
const REMOVED_WITHIN: Duration = Duration::from_mins(8);

/// All objects of a cluster by kind, namespace and name, except those that change by themselves.
pub(super) type Dump = BTreeMap<String, Value>;

pub(in super::super) fn run(ctx: &Context<'_>) -> Result<()> {
    with_installer(ctx, |lab| {
        let site = &lab.site;
        let before = lab.before_kubesphere()?;
        ctx.kk_ok(&lab.switched(true)?, "create", &[])?;
        let controlled = lab.controlled(true)?;
        ctx.kk_ok(&controlled, "create", &[])?;
        lab.marks_all_namespaces()?;
        ctx.kubectl(site, &format!("label namespace {PROJECT} kubesphere.io/workspace=of-a-user"))?;
        ctx.until("the role of the project is made", PATIENCE, || {
            let roles = ctx.kubectl(site, &format!("-n {PROJECT} get roles -o name"))?;
            Ok(roles.contains("role-template-view-basic").then_some(()))
        })?;
        lab.nothing_to_do(&controlled)?;
        lab.removes(|after| differences(&before, after))?;

        // The whole cluster is deleted while KubeSphere is in it.
        ctx.kk_ok(&controlled, "create", &[])?;
        let run = ctx.kk_ok(&controlled, "delete", &[])?;
        is_removed_first(&run)
    })
}

impl Lab<'_> {
    /// A cluster without KubeSphere that contains some objects of a user.
    pub(super) fn before_kubesphere(&self) -> Result<Dump> {
        let bare = self.site.variant("bare", |file| {
            if let Some(spec) = file["spec"].as_object_mut() {
                spec.remove("kubesphere");
            }
        })?;
        self.ctx.kk_ok(&bare, "create", &[])?;
        self.makes_a_project()?;
        self.dump()
    }

    /// A namespace of a user with an object in it.
    pub(super) fn makes_a_project(&self) -> Result<()> {
        for object in [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PROJECT, "labels": {"kept": "theirs"}}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": PROJECT}, "data": {"a": "b"}}),
        ] {
            self.ctx.apply(&self.site, &object.to_string())?;
        }
        Ok(())
    }

    /// Deletes the object and waits until it is gone. Then `differ` must find no difference from the API before the installation,
    /// and namespaces and administrators work as before.
    pub(super) fn removes(&self, differ: impl Fn(&Dump) -> Vec<String>) -> Result<()> {
        let (ctx, site) = (self.ctx, &self.site);
        ctx.kubectl(site, &format!("-n {NAMESPACE} delete cc ks-installer --wait=false"))?;
        ctx.until("everything is removed", REMOVED_WITHIN, || {
            Ok(ctx.kubectl(site, "get cc -A --ignore-not-found -o name")?.trim().is_empty().then_some(()))
        })?;
        self.is_as_before(differ)?;
        // No controller handles finalizers of namespaces any more.
        ctx.kubectl(site, &format!("delete namespace {PROJECT} --wait=false"))?;
        ctx.until("a namespace of a user can be deleted", PATIENCE, || {
            let left = ctx.kubectl(site, &format!("get namespace {PROJECT} --ignore-not-found -o name"))?;
            Ok(left.trim().is_empty().then_some(()))
        })?;
        let may = ctx.kubectl(site, "auth can-i '*' '*'")?;
        ensure!(may.trim() == "yes", "administrators have lost their rights: {may}");
        Ok(())
    }

    /// The site with metrics-server on or off, and with the stand-in of KubeSphere's controller; the operator is there.
    pub(super) fn controlled(&self, metrics: bool) -> Result<crate::site::Site> {
        let image = format!(
            "-n {NAMESPACE} get deployment ks-installer -o jsonpath={{.spec.template.spec.containers[0].image}}"
        );
        let image = self.ctx.kubectl(&self.site, &image)?;
        let coredns = self.ctx.kubectl(&self.site, super::COREDNS)?;
        let stand_in = json!({"core": true, "image": coredns, "controller": image.trim()});
        self.with(&json!({"metrics_server": {"enabled": metrics}, "stand_in": stand_in}))
    }

    /// Like the real controller, the stand-in puts its finalizer on namespaces that it does not own.
    pub(super) fn marks_all_namespaces(&self) -> Result<()> {
        self.ctx.until("all namespaces have the finalizer", PATIENCE, || {
            let list = self.ctx.kubectl_json(&self.site, "get namespaces")?;
            let is_marked = |one: &Value| one["metadata"]["finalizers"].is_array();
            Ok(checks::items(&list).all(is_marked).then_some(()))
        })
    }

    /// Everything in the API.
    pub(super) fn dump(&self) -> Result<Dump> {
        let kinds = self.ctx.kubectl(&self.site, "api-resources --verbs=list,get -o name")?;
        let kinds: Vec<&str> = kinds.split_whitespace().filter(|kind| !MOVING.contains(kind)).collect();
        let list = self.ctx.kubectl_json(&self.site, &format!("get {} -A", kinds.join(",")))?;
        Ok(checks::items(&list).map(|object| (name(object), still(object))).collect())
    }

    /// Waits until `differ` finds no difference from the first dump.
    fn is_as_before(&self, differ: impl Fn(&Dump) -> Vec<String>) -> Result<()> {
        // Controllers of Kubernetes remove what belonged to others.
        let mut found = Vec::new();
        let seen = self.ctx.until("the API is as before", PATIENCE, || {
            found = differ(&self.dump()?);
            Ok(found.is_empty().then_some(()))
        });
        ensure!(seen.is_ok(), "after the removal there are differences: {}", found.join("\n"));
        Ok(())
    }
}

fn name(object: &Value) -> String {
    let text = |value: &Value| checks::text(value);
    let metadata = &object["metadata"];
    format!("{} {}/{}", text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]))
}

/// An object without its status, and without the records of its writers.
fn still(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for key in ["managedFields", "resourceVersion", "generation"] {
            metadata.remove(key);
        }
        // `kubectl` and controllers leave empty ones.
        metadata.retain(|_, value| !value.as_object().is_some_and(serde_json::Map::is_empty));
    }
    if object["kind"] == "Node" {
        // Contains the size of each image on a node, and when it was seen.
        object["metadata"]["annotations"].take();
    }
    object
}

/// Errors: `kk delete cluster` did not remove KubeSphere before the hosts.
pub(super) fn is_removed_first(run: &KkRun) -> Result<()> {
    let said = &run.finished.stdout;
    ensure!(said.contains("removed before the hosts"), "KubeSphere was not removed first:\n{said}");
    Ok(())
}

pub(super) fn is_explained(object: &str) -> bool {
    EXCEPTIONS.iter().any(|(beginning, _)| object.starts_with(beginning))
}

/// Differences that nothing in [`EXCEPTIONS`] explains.
pub(super) fn differences(before: &Dump, after: &Dump) -> Vec<String> {
    let added = after.keys().filter(|name| !before.contains_key(*name));
    let all = before.keys().chain(added).filter(|name| !is_explained(name));
    all.filter_map(|name| match (before.get(name), after.get(name)) {
        (Some(before), Some(after)) if before == after => None,
        (Some(before), Some(after)) => Some(format!("{name} was\n  {before}\nand is\n  {after}")),
        (Some(_), None) => Some(format!("{name} is gone")),
        (None, _) => Some(format!("{name} is left")),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_explained_may_differ() {
        let dump = |names: &[&str], value: i32| -> Dump {
            names.iter().map(|name| ((*name).to_owned(), json!({"data": value}))).collect()
        };
        let role = "ClusterRole /cluster-admin";
        let before = dump(&[role, "Namespace /default"], 1);
        assert!(differences(&before, &before).is_empty());
        let mut after = dump(&["Namespace /default", "Role default/role-template-view-basic"], 1);
        after.extend(dump(&["Deployment kubesphere-system/ks-installer"], 1));
        let found = differences(&before, &after);
        assert_eq!(
            found,
            [format!("{role} is gone"), "Role default/role-template-view-basic is left".to_owned()]
        );
        assert_eq!(differences(&before, &dump(&[role, "Namespace /default"], 2)).len(), 2);
    }

    #[test]
    fn what_moves_by_itself_is_no_difference() {
        let object = |version: &str, labels: Value| {
            still(
                &json!({"kind": "Namespace", "metadata": {"name": "a", "uid": "u", "resourceVersion": version, "labels": labels},
                "status": {"phase": version}}),
            )
        };
        assert_eq!(object("1", json!({})), object("2", Value::Object(serde_json::Map::new())));
        assert_ne!(object("1", json!({"a": "b"})), object("1", json!({})));
    }
}
