//! Tests how components are switched on, changed, left unchanged, and switched off.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use ks_installer::engine::Phase;
use serde_json::json;

use crate::cluster::audit;
use crate::cluster::lab::{Lab, Told, entries, pass, pass_until};

const MAPS: &str = "\
enabled: spec.maps.enabled
inputs: [maps]
namespace: NS
sources: [{manifests: manifests/maps}]
";
const TWO: &str = "\
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {size: '{{ spec.maps.size | default(1) }}'}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {k: v}}
{% if spec.maps.more %}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}
{% endif %}
";

fn maps(name: &str) -> Lab {
    Lab::new(name, &[("components/maps.yaml", MAPS), ("manifests/maps/two.yaml", TWO)])
}

#[tokio::test]
async fn a_component_is_installed_changed_and_removed_and_nothing_costs_nothing() {
    let lab = maps("lifecycle");
    let engine = lab.engine().await;
    let told = pass(&engine, &json!({"maps": {"enabled": true}}), &[]).await;
    assert_eq!(told.last("maps"), Some(Phase::Ready));
    assert_eq!(lab.kubectl("get cm a -o jsonpath='{.data.size}'"), "1");
    let inventory = engine.inventories().get("maps").unwrap();
    assert_eq!(entries(&inventory), ["ConfigMap lifecycle/a Created", "ConfigMap lifecycle/b Created"]);

    // The same spec with a value that is not an input sends no request.
    let before = audit::requests("lifecycle").len();
    pass(&engine, &json!({"maps": {"enabled": true}, "other": 1}), &[]).await;
    assert_eq!(audit::requests("lifecycle").len(), before);
    // After a restart, only the inventories and the version are read.
    let engine = lab.engine().await;
    pass(&engine, &json!({"maps": {"enabled": true}}), &[]).await;
    assert_eq!(audit::writes(&audit::requests("lifecycle")[before..]), [""; 0]);
    assert!(
        audit::requests("lifecycle").len() - before <= 5,
        "{:?}",
        &audit::requests("lifecycle")[before..]
    );

    // A change of one field sends one request for one object.
    let before = audit::requests("lifecycle").len();
    pass(&engine, &json!({"maps": {"enabled": true, "size": 2}}), &[]).await;
    assert_eq!(audit::writes(&audit::requests("lifecycle")[before..]), ["patch configmaps/a"]);
    assert_eq!(lab.kubectl("get cm a -o jsonpath='{.data.size}'"), "2");

    // A changed spec adds an object, and the next one removes it.
    pass(&engine, &json!({"maps": {"enabled": true, "more": true}}), &[]).await;
    assert!(lab.has("cm/c"));
    pass(&engine, &json!({"maps": {"enabled": true}}), &[]).await;
    assert!(!lab.has("cm/c") && lab.has("cm/b"));

    let told = pass(&engine, &json!({"maps": {"enabled": false}}), &[]).await;
    assert_eq!(told.last("maps"), Some(Phase::Removed));
    assert!(!lab.has("cm/a") && !lab.has("cm/b") && !lab.has("secret/ks-installer-inventory-maps"));
    // Switch it on again.
    pass(&engine, &json!({"maps": {"enabled": true}}), &[]).await;
    assert!(lab.has("cm/a"));
}

#[tokio::test]
async fn what_somebody_else_changed_or_deleted_is_healed() {
    let lab = maps("drift");
    let (engine, spec) = (lab.engine().await, json!({"maps": {"enabled": true}}));
    pass(&engine, &spec, &[]).await;
    lab.kubectl("patch cm a --type=merge -p '{\"data\":{\"size\":\"9\"}}'");
    lab.kubectl("delete cm b");
    let before = audit::requests("drift").len();
    pass(&engine, &spec, &["maps"]).await;
    assert_eq!(
        audit::writes(&audit::requests("drift")[before..]),
        ["patch configmaps/a", "patch configmaps/b"]
    );
    assert_eq!(lab.kubectl("get cm a -o jsonpath='{.data.size}'"), "1");
    assert!(lab.has("cm/b"));
    // Additional fields of other owners stay.
    lab.kubectl("label cm a theirs=yes");
    let before = audit::requests("drift").len();
    pass(&engine, &spec, &["maps"]).await;
    assert_eq!(audit::writes(&audit::requests("drift")[before..]), [""; 0]);
}

#[tokio::test]
async fn a_shared_part_stays_until_its_last_user_is_gone() {
    let part = |name: &str, depends: &str| {
        format!("enabled: {name}\ndependsOn: [{depends}]\nnamespace: NS\nsources: [{{manifests: manifests/")
    };
    let one = part("spec.one.enabled", "shared") + "one.yaml}]";
    let two = part("spec.two.enabled", "shared") + "two.yaml}]";
    let shared = part("when needed", "") + "shared.yaml}]";
    let map = |name: &str| format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}");
    let files = [
        ("components/one.yaml", one.as_str()),
        ("components/two.yaml", &two),
        ("components/shared.yaml", &shared),
        ("manifests/one.yaml", &map("one")),
        ("manifests/two.yaml", &map("two")),
        ("manifests/shared.yaml", &map("shared")),
    ];
    let lab = Lab::new("shared", &files);
    let engine = lab.engine().await;
    let spec = |one: bool, two: bool| json!({"one": {"enabled": one}, "two": {"enabled": two}});
    let told = pass(&engine, &spec(true, true), &[]).await;
    assert_eq!(told.ended()[0], "shared", "what others need comes first");
    pass(&engine, &spec(false, true), &[]).await;
    assert!(!lab.has("cm/one") && lab.has("cm/shared") && lab.has("cm/two"));
    let told = pass(&engine, &spec(false, false), &[]).await;
    assert_eq!(told.ended(), ["two", "shared"], "what others need goes last");
    assert!(!lab.has("cm/shared"));
}

#[tokio::test]
async fn what_comes_after_another_needs_it_only_for_the_order() {
    let part = |name: &str, more: &str| {
        format!(
            "enabled: spec.{name}\n{more}namespace: NS\nsources: [{{manifests: manifests/{name}.yaml}}]\n"
        )
    };
    let map = |name: &str| format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}");
    let lab = Lab::new(
        "after",
        &[
            ("components/a.yaml", part("a", "after: [z]\n").as_str()),
            ("components/z.yaml", &part("z", "")),
            ("manifests/a.yaml", &map("a")),
            ("manifests/z.yaml", &map("z")),
        ],
    );
    let engine = lab.engine().await;
    for (spec, ended) in [
        (json!({"a": true}), &["a"][..]),
        (json!({}), &["a"]),
        (json!({"a": true, "z": true}), &["z", "a"]),
        // The component that comes after it stays.
        (json!({"a": true}), &["a", "z"]),
        (json!({"a": true, "z": true}), &["a", "z"]),
        (json!({}), &["a", "z"]),
    ] {
        let mut found = pass(&engine, &spec, &[]).await.ended();
        if spec["a"] == true && ended == ["a", "z"] {
            // The object existed before, regardless of the other one.
            found.sort();
        }
        assert_eq!(found, ended, "{spec}");
    }
    assert!(!lab.has("cm/a") && !lab.has("cm/z"));
}

#[tokio::test]
async fn a_component_that_a_newer_payload_does_not_have_is_removed() {
    let lab = maps("dropped");
    let spec = json!({"maps": {"enabled": true}});
    pass(&lab.engine().await, &spec, &[]).await;
    let other = MAPS.replace("manifests/maps", "manifests/other").replace("NS", "dropped");
    lab.remove_from_payload("components/maps.yaml");
    lab.payload_of(&[("components/other.yaml", other.as_str()), ("manifests/other/o.yaml", OTHER)]);
    let told = pass(&lab.engine().await, &spec, &[]).await;
    assert_eq!((told.last("maps"), told.last("other")), (Some(Phase::Removed), Some(Phase::Ready)));
    assert!(!lab.has("cm/a") && !lab.has("cm/b") && lab.has("cm/o"));
}

const OTHER: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: o}}\n";

/// The pod may wait for another component, so this is no failure, even after the time limit for a stuck pod.
#[tokio::test]
async fn a_pod_that_keeps_ending_is_told_with_what_it_ended() {
    let component = "enabled: spec.on\nnamespace: NS\nsources: [{manifests: manifests/d.yaml}]\n";
    let deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: {matchLabels: {a: ends}}, \
                      template: {metadata: {labels: {a: ends}}, spec: {containers: [{name: c, image: i}]}}}}\n";
    let lab = Lab::new("ending", &[("components/a.yaml", component), ("manifests/d.yaml", deployment)]);
    let engine = lab.engine().await.with_patience(Duration::from_secs(1));
    let (on, told) = (json!({"on": true}), Told::default());
    lab.apply("{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: NS, labels: {a: ends}}, spec: {containers: [{name: c, image: i}]}}");
    let state = json!({"status": {"containerStatuses": [{
        "name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 3,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 2, "reason": "Error"}}
    }]}});
    lab.kubectl(&format!("patch pod p --subresource=status --type=merge -p '{state}'"));
    let said = "c of pod p was restarted 3 times, and ended with exit code 2 (Error) last";
    let since = OnceLock::new();
    pass_until(&engine, &on, &told, "its end to be told again after its patience", |told| {
        assert!(!matches!(told.last("a"), Some(Phase::Failed(_))), "{:?}", told.last("a"));
        let is_told = matches!(told.last("a"), Some(Phase::Progressing(why)) if why.contains(said));
        is_told && since.get_or_init(Instant::now).elapsed() > Duration::from_secs(5)
    })
    .await;
}

#[tokio::test]
async fn what_a_controller_makes_is_waited_for() {
    let component = "enabled: spec.on\nnamespace: NS\ninputs: [more]\nsources: [{manifests: manifests/map.yaml}]\nwaitsFor:\n\
        - {apiVersion: apps/v1, kind: Deployment, namespace: NS, name: made}\n\
        - {apiVersion: apps/v1, kind: DaemonSet, namespace: NS, name: more, when: spec.more}\n";
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: asks}}\n";
    let lab = Lab::new("awaited", &[("components/a.yaml", component), ("manifests/map.yaml", map)]);
    let (engine, on, told) = (lab.engine().await, json!({"on": true}), Told::default());
    let waits = |told: &Told, text: &str| matches!(told.last("a"), Some(Phase::Progressing(why)) if why.contains(text));
    let missing = "Deployment awaited/made: its controller has not made it";
    pass_until(&engine, &on, &told, "a wait for what is not there", |told| waits(told, missing)).await;
    let pods = "selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}";
    lab.apply(&format!("{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: made, namespace: NS}}, spec: {{replicas: 1, {pods}}}}}"));
    let not_seen = "Deployment awaited/made: its controller has not seen the change";
    pass_until(&engine, &on, &told, "a wait for its pods", |told| waits(told, not_seen)).await;
    let status = "{\"status\":{\"observedGeneration\":9,\"replicas\":1,\"updatedReplicas\":1,\"readyReplicas\":1,\"availableReplicas\":1}}";
    lab.kubectl(&format!("patch deployment made --subresource=status --type=merge -p '{status}'"));
    assert_eq!(pass(&engine, &on, &[]).await.last("a"), Some(Phase::Ready));
    // It is not an object of the component.
    assert_eq!(entries(&engine.inventories().get("a").unwrap()), ["ConfigMap awaited/asks Created"]);
    let (more, told) = (json!({"on": true, "more": true}), Told::default());
    let missing = "DaemonSet awaited/more: its controller has not made it";
    pass_until(&engine, &more, &told, "a wait for what is asked for now", |told| waits(told, missing)).await;
    pass(&engine, &json!({"on": false}), &[]).await;
    assert!(lab.has("deployment/made") && !lab.has("cm/asks"));
}

/// No node starts pods in this test.
#[tokio::test]
async fn a_webhook_is_registered_when_its_pods_answer() {
    let component = "enabled: 'true'\nnamespace: NS\nreadyWithinSeconds: 1\nsources: [{manifests: manifests/hook.yaml}]\n";
    let objects = "\
{apiVersion: apps/v1, kind: Deployment, metadata: {name: hook}, spec: {selector: {matchLabels: {a: b}}, \
 template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NS}
webhooks:
- name: hook.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {namespace: NS, name: hook}}
  rules: [{apiGroups: [NS.example.com], apiVersions: [v1], operations: [CREATE], resources: [none]}]
";
    let lab = Lab::new("hook-late", &[("components/hook.yaml", component), ("manifests/hook.yaml", objects)]);
    let (engine, told, spec) = (lab.engine().await, Told::default(), json!({}));
    pass_until(&engine, &spec, &told, "a wait", |told| told.failure("hook").is_some()).await;
    assert!(lab.has("deployment/hook") && !lab.has("validatingwebhookconfiguration/hook-late"));
    let status = "{\"observedGeneration\":1,\"replicas\":1,\"updatedReplicas\":1,\"readyReplicas\":1,\"availableReplicas\":1}";
    lab.kubectl(&format!(
        "patch deployment hook --subresource=status --type=merge -p '{{\"status\":{status}}}'"
    ));
    pass(&engine, &spec, &[]).await;
    assert!(lab.has("validatingwebhookconfiguration/hook-late"));
}

#[tokio::test]
async fn a_component_waits_for_kinds_and_not_for_who_works_for_them() {
    let kinds = "\
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.NS.example.com}, spec: {group: NS.example.com, \
 scope: Namespaced, names: {kind: Thing, plural: things, singular: thing}, versions: [{name: v1, served: true, storage: true, \
 schema: {openAPIV3Schema: {type: object}}}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, \
 template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
";
    let gate = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: gate}, spec: {replicas: 0, selector: {matchLabels: {c: d}}, \
        template: {metadata: {labels: {c: d}}, spec: {containers: [{name: c, image: i}]}}}}";
    let broken = "{apiVersion: v1, kind: ConfigMap, metadata: {name: 'No Name'}}";
    let component = |file: &str, more: &str| {
        format!(
            "enabled: spec.{file}\nnamespace: NS\n{more}sources: [{{manifests: manifests/{file}.yaml}}]\n"
        )
    };
    let lab = Lab::new(
        "kinds",
        &[
            ("components/core.yaml", &component("core", "kindsOf: [later, broken, off]\n")),
            ("components/later.yaml", &component("later", "dependsOn: [gate]\nreadyWithinSeconds: 60\n")),
            ("components/gate.yaml", &component("gate", "readyWithinSeconds: 2\n")),
            ("components/broken.yaml", &component("broken", "")),
            ("components/off.yaml", &component("off", "")),
            ("manifests/core.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: reader}}"),
            ("manifests/later.yaml", kinds),
            ("manifests/gate.yaml", gate),
            ("manifests/broken.yaml", broken),
            ("manifests/off.yaml", broken),
        ],
    );
    let (engine, told) = (lab.engine().await, Told::default());
    let spec = json!({"core": true, "later": true, "gate": true, "broken": true});
    // `later` waits for the gate, so its kinds are unknown. A reader that does not wait for them would be applied by now.
    pass_until(&engine, &spec, &told, "a failure of the gate", |told| told.failure("gate").is_some()).await;
    assert_eq!(told.last("core"), Some(Phase::Waiting("later comes first".to_owned())));
    assert!(!lab.has("cm/reader") && !lab.has("crd/things.kinds.example.com"));
    let status = "{\"status\":{\"observedGeneration\":9,\"replicas\":0}}";
    lab.kubectl(&format!("patch deployment gate --subresource=status --type=merge -p '{status}'"));
    pass_until(&engine, &spec, &told, "the core", |told| told.last("core") == Some(Phase::Ready)).await;
    assert!(
        matches!(told.last("later"), Some(Phase::Installing | Phase::Progressing(_))),
        "{:?}",
        told.last("later")
    );
    let asked = audit::requests("kinds");
    let first = |what: &str| asked.iter().position(|request| request == what);
    let (kind, reader) =
        (first("patch customresourcedefinitions/things.kinds.example.com"), first("patch configmaps/reader"));
    assert!(kind.is_some() && kind < reader, "{asked:?}");
}
