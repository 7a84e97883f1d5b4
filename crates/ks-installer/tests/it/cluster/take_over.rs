//! Objects that are there before.

use ks_installer::engine::Phase;
use serde_json::json;

use crate::cluster::audit;
use crate::cluster::lab::{Lab, Told, entries, pass, pass_until};

const COMPONENT: &str = "enabled: spec.on\nnamespace: NS\ninputs: [size]\nreadyWithinSeconds: 60\nsources: [{manifests: manifests/a.yaml}]\n";
const OBJECTS: &str = "\
{apiVersion: v1, kind: ConfigMap, metadata: {name: equal}, data: {k: v}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: other}, data: {k: v}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: quota}
spec: {hard: {cpu: 1000m}}
";

#[tokio::test]
async fn objects_that_are_there_are_adopted_and_equal_ones_are_not_touched() {
    let lab = Lab::new("adopt", &[("components/a.yaml", COMPONENT), ("manifests/a.yaml", OBJECTS)]);
    lab.apply(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: equal, namespace: NS}, data: {k: v, more: x}}",
    );
    lab.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: NS}, data: {k: w}}");
    // The API server writes it in another way than the payload.
    lab.apply("{apiVersion: v1, kind: ResourceQuota, metadata: {name: quota, namespace: NS}, spec: {hard: {cpu: '1'}}}");
    let version =
        |what: &str| lab.kubectl(&format!("get {what} -o jsonpath='{{.metadata.resourceVersion}}'"));
    let (equal, quota) = (version("cm/equal"), version("quota/quota"));
    let engine = lab.engine().await;
    pass(&engine, &json!({"on": true}), &[]).await;
    assert_eq!((version("cm/equal"), version("quota/quota")), (equal.clone(), quota));
    assert_eq!(lab.kubectl("get cm other -o jsonpath='{.data.k}'"), "v");
    let inventory = engine.inventories().get("a").unwrap();
    assert!(entries(&inventory).iter().all(|entry| entry.ends_with("Adopted")), "{inventory:?}");
    // They stay equal after a look, too.
    pass(&lab.engine().await, &json!({"on": true}), &["a"]).await;
    assert_eq!(version("cm/equal"), equal);
    pass(&engine, &json!({"on": false}), &[]).await;
    assert!(!lab.has("cm/equal") && !lab.has("cm/other"), "they were part of what is switched off");
}

#[tokio::test]
async fn what_belongs_to_another_controller_is_refused_and_left_alone() {
    let lab = Lab::new("foreign", &[("components/a.yaml", COMPONENT), ("manifests/a.yaml", OBJECTS)]);
    lab.apply(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: NS, ownerReferences: \
         [{apiVersion: example.com/v1, kind: Thing, name: boss, uid: u, controller: true}]}, data: {k: theirs}}",
    );
    let (engine, told) = (lab.engine().await, Told::default());
    pass_until(&engine, &json!({"on": true}), &told, "the owner's name", |told| {
        told.failure("a").is_some_and(|text| {
            text.starts_with("OwnedByAnother: ConfigMap foreign/other belongs to Thing boss")
        })
    })
    .await;
    assert_eq!(audit::writes(&audit::requests("foreign")), [""; 0], "nothing of the component is written");
    // Healed when the cause goes.
    lab.kubectl("patch cm other --type=merge -p '{\"metadata\":{\"ownerReferences\":null}}'");
    let told = pass(&engine, &json!({"on": true}), &[]).await;
    assert_eq!(told.last("a"), Some(Phase::Ready));
}

/// As those of a KubeSphere that runs are.
#[tokio::test]
async fn a_namespace_is_adopted_though_a_workspace_owns_it() {
    let component = "enabled: spec.on\nsources: [{manifests: manifests/n.yaml}]\n";
    let namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: NS-own, labels: {a: b}}}\n";
    let lab = Lab::new("owned", &[("components/n.yaml", component), ("manifests/n.yaml", namespace)]);
    lab.apply(
        "{apiVersion: v1, kind: Namespace, metadata: {name: NS-own, ownerReferences: \
         [{apiVersion: tenant.kubesphere.io/v1alpha1, kind: Workspace, name: system-workspace, uid: u, controller: true}]}}",
    );
    let engine = lab.engine().await;
    let told = pass(&engine, &json!({"on": true}), &[]).await;
    assert_eq!(told.last("n"), Some(Phase::Ready));
    assert_eq!(entries(&engine.inventories().get("n").unwrap()), ["Namespace owned-own Adopted"]);
}

#[tokio::test]
async fn a_definition_and_a_namespace_of_somebody_else_stay() {
    let objects = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: parts.foreign.example.com}
spec:
  group: foreign.example.com
  scope: Namespaced
  names: {kind: Part, plural: parts, singular: part}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
{apiVersion: v1, kind: Namespace, metadata: {name: NS-theirs}}
";
    let lab = Lab::new("theirs", &[("components/a.yaml", COMPONENT), ("manifests/a.yaml", objects)]);
    lab.apply(objects);
    lab.apply("{apiVersion: foreign.example.com/v1, kind: Part, metadata: {name: p, namespace: NS}}");
    let engine = lab.engine().await;
    pass(&engine, &json!({"on": true}), &[]).await;
    pass(&engine, &json!({"on": false, "dataPolicy": "Delete"}), &[]).await;
    assert!(lab.has("part/p") && lab.has("ns/theirs-theirs"));
}
