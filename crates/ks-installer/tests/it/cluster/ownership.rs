//! Tests the ownership of objects, also after an interrupted pass: objects of other owners are never removed, and no object of
//! ks-installer is lost.

use ks_installer::engine::{Goal, Phase, Suspects};
use serde_json::{Value, json};

use crate::cluster::lab::{LIMIT, Lab, Told, no_more, pass, pass_until};

const COMPONENT: &str = "enabled: spec.on\nnamespace: NS\ninputs: [v]\nreadyWithinSeconds: 2\nsources: [{manifests: manifests/a.yaml}]\n";
const MAP: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}";

fn lab(name: &str, objects: &str) -> Lab {
    Lab::new(name, &[("components/a.yaml", COMPONENT), ("manifests/a.yaml", objects)])
}

fn on() -> Value {
    json!({"on": true})
}

fn off() -> Value {
    json!({"on": false, "dataPolicy": "Delete"})
}

/// A definition that the component contains.
fn definition(kind: &str, versions: &str) -> String {
    let singular = kind.to_lowercase();
    format!(
        "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: {singular}s.NS.example.com}}, \
         spec: {{group: NS.example.com, scope: Namespaced, names: {{kind: {kind}, plural: {singular}s, singular: {singular}}}, \
         versions: [{versions}]}}}}\n"
    )
}

#[tokio::test]
async fn nothing_is_made_while_the_inventory_cannot_be_written() {
    let lab = lab("no-inventory", MAP);
    lab.apply("{apiVersion: v1, kind: ResourceQuota, metadata: {name: none, namespace: NS}, spec: {hard: {secrets: '0'}}}");
    // No controller counts objects in this test, and without a status the API server refuses nothing.
    lab.kubectl("patch quota none --subresource=status --type=merge -p '{\"status\":{\"hard\":{\"secrets\":\"0\"},\"used\":{\"secrets\":\"0\"}}}'");
    let (engine, told) = (lab.engine().await, Told::default());
    let failures = std::sync::atomic::AtomicUsize::new(0);
    pass_until(&engine, &on(), &told, "several failures", |told| {
        let failed = told.failure("a").is_some();
        failed && failures.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 40
    })
    .await;
    assert!(!lab.has("cm/a"), "an object that no inventory knows");
    lab.kubectl("delete quota none");
    assert_eq!(pass(&engine, &on(), &[]).await.last("a"), Some(Phase::Ready));
    pass(&lab.engine().await, &off(), &[]).await;
    assert!(!lab.has("cm/a"));
}

#[tokio::test]
async fn another_version_of_the_api_is_no_other_object() {
    let version = |name: &str, is_stored: bool| {
        format!(
            "{{name: {name}, served: true, storage: {is_stored}, schema: {{openAPIV3Schema: {{type: object}}}}}}"
        )
    };
    let definition =
        definition("Move", &[version("v1beta1", true), version("v1", false)].join(", ")) + "---\n";
    let in_version = |version: &str| {
        format!("{definition}{{apiVersion: NS.example.com/{version}, kind: Move, metadata: {{name: m}}}}")
    };
    let lab = lab("moves", &in_version("v1beta1"));
    pass(&lab.engine().await, &on(), &[]).await;
    let uid = || lab.kubectl("get move m -o jsonpath='{.metadata.uid}'");
    let before = uid();
    lab.payload_of(&[("manifests/a.yaml", &in_version("v1"))]);
    pass(&lab.engine().await, &on(), &[]).await;
    assert_eq!(uid(), before);
}

#[tokio::test]
async fn what_was_adopted_stays_adopted_when_it_is_switched_off_and_on_again() {
    let lab = lab(
        "adopted-twice",
        "{apiVersion: v1, kind: Namespace, metadata: {name: NS-theirs, labels: {a: b}}}",
    );
    lab.apply("{apiVersion: v1, kind: Namespace, metadata: {name: NS-theirs, labels: {a: other}}}");
    for _ in 0..2 {
        pass(&lab.engine().await, &on(), &[]).await;
        pass(&lab.engine().await, &off(), &[]).await;
        assert!(lab.has("ns/adopted-twice-theirs"));
    }
    // The inventory is lost.
    pass(&lab.engine().await, &on(), &[]).await;
    lab.kubectl("delete secret ks-installer-inventory-a");
    pass(&lab.engine().await, &on(), &[]).await;
    pass(&lab.engine().await, &off(), &[]).await;
    assert!(lab.has("ns/adopted-twice-theirs"));
}

#[tokio::test]
async fn what_comes_after_it_was_entered_belongs_to_who_made_it() {
    let lab = lab("entered", MAP);
    let engine = lab.engine().await;
    // The state after a crash between these two steps.
    let entered = json!({"hash": "", "ready": false, "objects": [
        {"apiVersion": "v1", "kind": "ConfigMap", "namespace": lab.name, "name": "a",
         "origin": "created", "uid": "", "applied": "", "live": ""}]});
    pass(&engine, &on(), &[]).await;
    lab.kubectl("delete cm a");
    let patch = json!({"stringData": {"inventory.json": entered.to_string()}}).to_string();
    lab.kubectl(&format!("patch secret ks-installer-inventory-a --type=merge -p '{patch}'"));
    lab.apply(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: NS, ownerReferences: \
         [{apiVersion: example.com/v1, kind: Thing, name: boss, uid: u, controller: true}]}, data: {k: theirs}}",
    );
    let (engine, told) = (lab.engine().await, Told::default());
    pass_until(&engine, &on(), &told, "the owner's name", |told| {
        told.failure("a").is_some_and(|text| text.starts_with("OwnedByAnother"))
    })
    .await;
    assert_eq!(lab.kubectl("get cm a -o jsonpath='{.data.k}'"), "theirs");
}

#[tokio::test]
async fn instances_of_a_definition_of_somebody_else_stay() {
    let definition = definition(
        "Box",
        "{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}",
    );
    let lab = lab("boxes", &definition);
    pass(&lab.engine().await, &on(), &[]).await;
    lab.kubectl("delete crd boxs.boxes.example.com");
    // The definition of another vendor, with objects of users.
    lab.apply(&definition);
    lab.kubectl("wait --for=condition=Established crd/boxs.boxes.example.com --timeout=60s");
    lab.apply("{apiVersion: boxes.example.com/v1, kind: Box, metadata: {name: theirs, namespace: NS}}");
    pass(&lab.engine().await, &off(), &[]).await;
    assert!(lab.has("box/theirs"));
}

#[tokio::test]
async fn what_is_deleted_while_it_is_waited_for_is_made_again() {
    let objects = "\
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, \
 template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
";
    let lab = lab("in-wait", objects);
    let (engine, told) = (lab.engine().await, Told::default());
    pass_until(&engine, &on(), &told, "a wait", |told| told.failure("a").is_some()).await;
    lab.kubectl("delete deployment d");
    pass_until(&engine, &on(), &Told::default(), "the object", |_| lab.has("deployment/d")).await;
}

#[tokio::test]
async fn what_is_not_wanted_any_more_is_not_waited_for() {
    let broken = "\
{apiVersion: apps/v1, kind: Deployment, metadata: {name: broken}, spec: {selector: {matchLabels: {a: b}}, \
 template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
";
    let lab = lab("outdated", broken);
    let (engine, told) = (lab.engine().await, Told::default());
    pass_until(&engine, &on(), &told, "a wait", |told| told.failure("a").is_some()).await;
    lab.payload_of(&[("manifests/a.yaml", MAP)]);
    assert_eq!(pass(&lab.engine().await, &on(), &[]).await.last("a"), Some(Phase::Ready));
    assert!(lab.has("cm/a") && !lab.has("deployment/broken"));
}

#[tokio::test]
async fn a_spec_that_comes_back_in_the_middle_of_another_is_written_again() {
    let objects = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {v: '{{ spec.v | default(1) }}'\
                   {% if spec.v %}, more: '1'{% endif %}}}\n\
                   {% if spec.v %}\n---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, \
                   template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}\n{% endif %}\n";
    let lab = lab("back", objects);
    let engine = lab.engine().await;
    pass(&engine, &on(), &[]).await;
    // The second object is never ready, so this pass never ends.
    let value = || lab.kubectl("get cm a -o jsonpath='{.data}'");
    let (other, suspects, told) = (json!({"on": true, "v": 2}), Suspects::new(), Told::default());
    let mut more = no_more();
    tokio::select! {
        () = engine.pass(Goal::Have(&other), &suspects, &mut more, &told) => panic!("it came to its end"),
        () = async { while !value().contains("more") { tokio::time::sleep(std::time::Duration::from_millis(50)).await } } => {}
        () = tokio::time::sleep(LIMIT) => panic!("nothing was written: {:?}", told.last("a")),
    }
    pass(&lab.engine().await, &on(), &[]).await;
    assert_eq!(value(), r#"{"v":"1"}"#);
}

#[tokio::test]
async fn a_secret_that_is_retained_keeps_its_namespace() {
    let objects = "\
{apiVersion: v1, kind: Namespace, metadata: {name: NS-own}}
---
{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: NS-own}, stringData: {k: v}}
";
    let lab = lab("retain", objects);
    pass(&lab.engine().await, &on(), &[]).await;
    pass(&lab.engine().await, &json!({"on": false}), &[]).await;
    let left = lab.kubectl("-n retain-own get secret s -o jsonpath='{.metadata.deletionTimestamp}{.data.k}'");
    assert_eq!(left, "dg==");
}

#[tokio::test]
async fn a_binding_that_somebody_made_anew_is_replaced() {
    let objects = "\
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b}, \
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: right}}
";
    let lab = lab("bindings", objects);
    pass(&lab.engine().await, &on(), &[]).await;
    lab.kubectl("delete rolebinding b");
    lab.apply(&objects.replace("name: b}", "name: b, namespace: NS}").replace("right", "wrong"));
    pass(&lab.engine().await, &on(), &["a"]).await;
    assert_eq!(lab.kubectl("get rolebinding b -o jsonpath='{.roleRef.name}'"), "right");
}

#[tokio::test]
async fn the_end_of_everything_follows_the_data_policy() {
    let lab = lab("end", "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {k: v}}");
    let engine = lab.engine().await;
    for (policy, is_left) in [("Retain", true), ("Delete", false)] {
        pass(&engine, &on(), &[]).await;
        let spec = json!({"on": true, "dataPolicy": policy});
        engine.pass(Goal::Remove(&spec), &Suspects::new(), &mut no_more(), &Told::default()).await;
        assert_eq!(lab.has("secret/s"), is_left, "{policy}");
        assert!(!lab.has("secret/ks-installer-inventory-a"));
    }
}
