//! Tests objects that exist before their component.

use std::time::Instant;

use ks_installer::engine::Phase;
use serde_json::{Value, json};

use crate::cluster::audit;
use crate::cluster::lab::{LIMIT, Lab, Told, entries, pass, pass_until};

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
    // The API server stores it in another notation than the payload.
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
    // They also stay equal after a check.
    pass(&lab.engine().await, &json!({"on": true}), &["a"]).await;
    assert_eq!(version("cm/equal"), equal);
    pass(&engine, &json!({"on": false}), &[]).await;
    assert_eq!(version("cm/equal"), equal);
    assert_eq!(
        lab.kubectl(
            "get cm other -o jsonpath='{.data} {.metadata.labels}{.metadata.annotations.installer*}'"
        ),
        r#"{"k":"w"}"#
    );
}

/// Existing objects. The payload contains all of them with another setting.
const THEIRS: &str = "\
{apiVersion: v1, kind: Namespace, metadata: {name: NS-theirs, labels: {a: theirs}}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: parts.NS.example.com}, spec: {group: NS.example.com, \
 scope: Namespaced, names: {kind: Part, plural: parts, singular: part}, versions: [{name: v1, served: true, storage: true, \
 schema: {openAPIV3Schema: {type: object, properties: {theirs: {type: string}}}}}]}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NS}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: NS, labels: {a: theirs}}, \
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: theirs}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: NS}, provisioner: example.com/p}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: NS}, value: 7, description: theirs}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: NS}, webhooks: [{name: a.example.com, \
 sideEffects: None, admissionReviewVersions: [v1], failurePolicy: Ignore, clientConfig: {url: 'https://theirs.example.com'}, \
 rules: [{apiGroups: [none.example.com], apiVersions: [v1], resources: [nothing], operations: [CREATE]}]}]}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: theirs, namespace: NS}, automountServiceAccountToken: false}
---
{apiVersion: v1, kind: Secret, metadata: {name: theirs, namespace: NS}, stringData: {k: theirs}}
---
{apiVersion: v1, kind: Service, metadata: {name: theirs, namespace: NS}, spec: {clusterIP: None, selector: {a: theirs}, ports: [{port: 80}]}}
";

/// The object without the metadata that records who changed it and when.
fn still(lab: &Lab, what: &str) -> Value {
    let mut object: Value = serde_json::from_str(&lab.kubectl(&format!("get {what} -o json"))).unwrap();
    let metadata = object["metadata"].as_object_mut().unwrap();
    for key in ["managedFields", "resourceVersion", "generation", "creationTimestamp", "uid"] {
        metadata.remove(key);
    }
    // The annotation of `kubectl apply`, and the state that a controller reports.
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    object["status"] = Value::Null;
    object
}

#[tokio::test]
async fn what_was_there_is_as_before_when_its_component_goes() {
    let role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: cluster-admin, annotations: {a: ours}}, \
        rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}, {nonResourceURLs: ['*'], verbs: ['*']}]}\n---\n";
    let ours = THEIRS
        .replace("theirs}", "ours, more: ours}")
        .replace("theirs", "ours")
        .replace("ours, namespace", "theirs, namespace");
    let ours =
        ours.replace("NS-ours", "NS-theirs").replace("description: ours, more: ours", "description: ours");
    let ours =
        ours.replace("name: ours, more: ours}}", "name: ours}}").replace("verbs: [get]", "verbs: [list]");
    let ours =
        ours.replace("provisioner:", "allowVolumeExpansion: true, provisioner:").replace("false}", "true}");
    let lab = Lab::new(
        "before",
        &[("components/a.yaml", COMPONENT), ("manifests/a.yaml", &(role.to_owned() + &ours))],
    );
    lab.apply(THEIRS);
    let objects = [
        "clusterrole/cluster-admin",
        "ns/before-theirs",
        "crd/parts.before.example.com",
        "clusterrole/before",
        "clusterrolebinding/before",
        "storageclass/before",
        "priorityclass/before",
        "validatingwebhookconfiguration/before",
        "serviceaccount/theirs",
        "secret/theirs",
        "service/theirs",
    ];
    let all = || objects.map(|what| (what, still(&lab, what)));
    let before = all();
    for policy in ["Retain", "Delete"] {
        let told = pass(&lab.engine().await, &json!({"on": true}), &[]).await;
        assert_eq!(told.last("a"), Some(Phase::Ready));
        for ((what, before), (_, now)) in before.iter().zip(all()) {
            assert_ne!(before, &now, "{what} was not changed, so that nothing is shown by it");
        }
        let told = pass(&lab.engine().await, &json!({"on": false, "dataPolicy": policy}), &[]).await;
        assert_eq!(told.last("a"), Some(Phase::Removed));
        for ((what, before), (_, now)) in before.iter().zip(all()) {
            assert_eq!(before, &now, "{what}");
        }
    }
}

const THEIR_BINDING: &str = "\
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b, namespace: NS, labels: {a: theirs, more: theirs}}, \
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: theirs}, subjects: [{kind: ServiceAccount, name: theirs, namespace: NS}]}
";
/// A definition, which is removed after the permissions.
const KIND: &str = "\
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: kept.NS.example.com}, \
 spec: {group: NS.example.com, scope: Namespaced, names: {kind: Kept, plural: kept, singular: kept}, \
 versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}
";
const OUR_BINDING: &str = "\
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b, labels: {a: ours}}, \
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: ours}}
";
/// No controller counts objects in this test, so the test sets the status.
const NO_BINDINGS: &str = "{\"status\":{\"hard\":{\"count/rolebindings.rbac.authorization.k8s.io\":\"0\"},\"used\":{\"count/rolebindings.rbac.authorization.k8s.io\":\"0\"}}}";

/// Makes the API server refuse each new binding in the namespace.
fn refuse_bindings(lab: &Lab) {
    lab.apply(
        "{apiVersion: v1, kind: ResourceQuota, metadata: {name: none, namespace: NS}, \
         spec: {hard: {count/rolebindings.rbac.authorization.k8s.io: '0'}}}",
    );
    lab.kubectl(&format!("patch quota none --subresource=status --type=merge -p '{NO_BINDINGS}'"));
    let until = Instant::now() + LIMIT;
    while !lab.kubectl("create rolebinding probe --role=probe 2>&1 || :").contains("exceeded quota") {
        assert!(Instant::now() < until, "the quota is not observed");
        lab.kubectl("delete rolebinding probe --ignore-not-found");
    }
}

/// The role of a binding cannot be changed, so the binding is deleted and replaced.
#[tokio::test]
async fn a_binding_is_as_before_though_its_replacement_was_interrupted() {
    let (on, off) = (json!({"on": true}), json!({"on": false}));
    // An interruption is between the deletion and the creation.
    for (name, when_written, is_written, when_given_back) in [
        ("b-whole", false, true, false),
        ("b-written", true, true, false),
        ("b-half-written", true, false, false),
        ("b-back", false, true, true),
    ] {
        let lab = Lab::new(name, &[("components/a.yaml", COMPONENT), ("manifests/a.yaml", OUR_BINDING)]);
        lab.apply(THEIR_BINDING);
        let before = still(&lab, "rolebinding/b");
        let interrupt = async |spec: &Value| {
            refuse_bindings(&lab);
            let told = Told::default();
            pass_until(&lab.engine().await, spec, &told, "a refusal", |told| {
                told.failure("a").is_some_and(|text| text.contains("exceeded quota"))
            })
            .await;
            assert!(!lab.has("rolebinding/b"), "{name}");
            lab.kubectl("delete quota none");
        };
        if when_written {
            interrupt(&on).await;
        }
        if is_written {
            assert_eq!(pass(&lab.engine().await, &on, &[]).await.last("a"), Some(Phase::Ready));
            assert_eq!(lab.kubectl("get rolebinding b -o jsonpath='{.roleRef.name}'"), "ours", "{name}");
        }
        if when_given_back {
            interrupt(&off).await;
        }
        let told = pass(&lab.engine().await, &off, &[]).await;
        assert_eq!(told.last("a"), Some(Phase::Removed), "{name}");
        assert_eq!(still(&lab, "rolebinding/b"), before, "{name}");
    }
}

/// A binding grants permissions, so a binding that a user deletes is not created again.
#[tokio::test]
async fn a_binding_that_a_user_deletes_is_not_restored() {
    let (on, off) = (json!({"on": true}), json!({"on": false}));
    for (name, when_given_back) in [("b-deleted", false), ("b-deleted-later", true)] {
        let component = format!("{COMPONENT}remove: {{withinSeconds: 2}}\n");
        let manifests = format!("{OUR_BINDING}---\n{KIND}");
        let lab = Lab::new(name, &[("components/a.yaml", &component), ("manifests/a.yaml", &manifests)]);
        lab.apply(THEIR_BINDING);
        pass(&lab.engine().await, &on, &[]).await;
        if when_given_back {
            // The removal fails after the binding is restored.
            let kind = format!("crd/kept.{name}.example.com");
            lab.kubectl(&format!(
                "patch {kind} --type=merge -p '{{\"metadata\":{{\"finalizers\":[\"example.com/busy\"]}}}}'"
            ));
            let told = Told::default();
            pass_until(&lab.engine().await, &off, &told, "the finalizer", |told| {
                told.failure("a").is_some_and(|text| text.contains("example.com/busy"))
            })
            .await;
            assert_eq!(lab.kubectl("get rolebinding b -o jsonpath='{.roleRef.name}'"), "theirs");
            lab.kubectl(&format!("patch {kind} --type=merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'"));
        }
        lab.kubectl("delete rolebinding b");
        assert_eq!(pass(&lab.engine().await, &off, &[]).await.last("a"), Some(Phase::Removed), "{name}");
        assert!(!lab.has("rolebinding/b"), "{name}");
    }
}

/// Like a role of Kubernetes that a user has deleted and that the payload contains.
#[tokio::test]
async fn what_kubernetes_makes_itself_is_never_deleted() {
    let role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NS, \
        labels: {kubernetes.io/bootstrapping: rbac-defaults}}, rules: []}";
    let lab = Lab::new("bootstrapping", &[("components/a.yaml", COMPONENT), ("manifests/a.yaml", role)]);
    pass(&lab.engine().await, &json!({"on": true}), &[]).await;
    pass(&lab.engine().await, &json!({"on": false}), &[]).await;
    let labels = lab.kubectl("get clusterrole bootstrapping -o jsonpath='{.metadata.labels}'");
    assert_eq!(labels, r#"{"kubernetes.io/bootstrapping":"rbac-defaults"}"#);
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
    // The component recovers when the cause is removed.
    lab.kubectl("patch cm other --type=merge -p '{\"metadata\":{\"ownerReferences\":null}}'");
    let told = pass(&engine, &json!({"on": true}), &[]).await;
    assert_eq!(told.last("a"), Some(Phase::Ready));
}

/// Namespaces of a running KubeSphere are like this.
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
