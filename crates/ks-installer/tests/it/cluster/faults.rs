//! Tests that a failing component does not affect others.

use std::time::Duration;

use ks_installer::engine::{Goal, Phase, Suspects};
use serde_json::json;

use crate::cluster::lab::{LIMIT, Lab, Told, no_more, pass, pass_until};

const GOOD: &str = "enabled: 'true'\nnamespace: NS\nsources: [{manifests: manifests/good.yaml}]\n";
const MAP: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: good}}\n";

/// Runs a failing component `bad` next to a good one. The failure has the expected text, and `mend` removes its cause.
async fn fails(name: &str, files: &[(&str, &str)], expected: &str, mend: impl Fn(&Lab)) {
    let lab = Lab::new(name, &[("components/good.yaml", GOOD), ("manifests/good.yaml", MAP)]);
    lab.payload_of(files);
    let (engine, told, spec) = (lab.engine().await, Told::default(), json!({"bad": true}));
    pass_until(&engine, &spec, &told, expected, |told| {
        told.last("good") == Some(Phase::Ready)
            && told.failure("bad").is_some_and(|text| text.contains(expected))
    })
    .await;
    assert!(lab.has("cm/good"));
    mend(&lab);
    let engine = lab.engine().await;
    let told = pass(&engine, &spec, &[]).await;
    assert_eq!(told.last("bad"), Some(Phase::Ready));
}

const BAD: &str =
    "enabled: spec.bad\nnamespace: NS\nreadyWithinSeconds: 1\nsources: [{manifests: manifests/bad.yaml}]\n";
const BAD_MAP: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: bad}}\n";

#[tokio::test]
async fn a_template_that_cannot_be_rendered_is_named() {
    let files = [("components/bad.yaml", BAD), ("manifests/bad.yaml", "{{ spec.x | nothing }}")];
    let mend = |lab: &Lab| lab.payload_of(&[("manifests/bad.yaml", BAD_MAP)]);
    fails("fault-render", &files, "RenderFailed: cannot render manifests/bad.yaml", mend).await;
}

#[tokio::test]
async fn an_object_that_is_refused_is_named() {
    let files = [
        ("components/bad.yaml", BAD),
        ("manifests/bad.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: Bad_Name}}"),
    ];
    let mend = |lab: &Lab| lab.payload_of(&[("manifests/bad.yaml", BAD_MAP)]);
    fails("fault-refused", &files, "Refused: ConfigMap fault-refused/Bad_Name", mend).await;
}

#[tokio::test]
async fn a_kind_that_nobody_knows_is_named() {
    let files = [
        ("components/bad.yaml", BAD),
        ("manifests/bad.yaml", "{apiVersion: unknown.example.com/v1, kind: What, metadata: {name: w}}"),
    ];
    let mend = |lab: &Lab| lab.payload_of(&[("manifests/bad.yaml", BAD_MAP)]);
    fails("fault-kind", &files, "KindMissing: What fault-kind/w", mend).await;
}

#[tokio::test]
async fn a_webhook_that_does_not_answer_is_named_and_healed_when_it_is_gone() {
    let hook = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NS}
webhooks:
- name: nobody.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 1
  clientConfig: {url: 'https://127.0.0.1:1/'}
  rules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [configmaps]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
  objectSelector: {matchLabels: {guarded: 'yes'}}
";
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: bad, labels: {guarded: 'yes'}}}\n";
    let lab = Lab::new("fault-webhook", &[]);
    lab.apply(hook);
    lab.payload_of(&[
        ("components/good.yaml", GOOD),
        ("manifests/good.yaml", MAP),
        ("components/bad.yaml", BAD),
        ("manifests/bad.yaml", map),
    ]);
    let (engine, told, spec) = (lab.engine().await, Told::default(), json!({"bad": true}));
    let seen = |told: &Told| {
        told.last("good") == Some(Phase::Ready)
            && told.failure("bad").is_some_and(|text| text.contains("nobody.example.com"))
    };
    pass_until(&engine, &spec, &told, "the webhook's name", seen).await;
    lab.kubectl("delete validatingwebhookconfiguration fault-webhook");
    assert_eq!(pass(&engine, &spec, &[]).await.last("bad"), Some(Phase::Ready));
}

#[tokio::test]
async fn what_is_required_and_missing_is_named_before_anything_is_written() {
    let needs = "\
enabled: spec.bad
namespace: NS
requires:
- {apiVersion: v1, kind: Secret, namespace: NS, name: etcd-certs, hint: kk makes it}
sources: [{manifests: manifests/bad.yaml}]
";
    let files = [("components/bad.yaml", needs), ("manifests/bad.yaml", BAD_MAP)];
    fails(
        "fault-requires",
        &files,
        "RequirementMissing: Secret fault-requires/etcd-certs is not there",
        |lab| {
            assert!(!lab.has("cm/bad"));
            lab.kubectl("create secret generic etcd-certs");
        },
    )
    .await;
}

#[tokio::test]
async fn a_workload_that_does_not_work_is_told_with_its_last_event() {
    let workload = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: bad}
spec:
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: none}]}}
";
    let lab = Lab::new("fault-ready", &[("components/bad.yaml", BAD), ("manifests/bad.yaml", workload)]);
    lab.apply(
        "{apiVersion: v1, kind: Event, metadata: {name: e, namespace: NS}, type: Warning, reason: FailedCreate, \
         message: quota exceeded, involvedObject: {kind: Deployment, name: bad, namespace: NS}}",
    );
    let (engine, told, spec) = (lab.engine().await, Told::default(), json!({"bad": true}));
    pass_until(&engine, &spec, &told, "the event", |told| {
        told.failure("bad").is_some_and(|text| {
            text.starts_with("NotReady: Deployment fault-ready/bad") && text.contains("quota exceeded")
        })
    })
    .await;
    let available = |count: u8| {
        let status = format!(
            "{{\"observedGeneration\":1,\"replicas\":1,\"updatedReplicas\":1,\"readyReplicas\":{count},\"availableReplicas\":{count}}}"
        );
        lab.kubectl(&format!(
            "patch deployment bad --subresource=status --type=merge -p '{{\"status\":{status}}}'"
        ));
    };
    available(1);
    assert_eq!(pass(&engine, &spec, &[]).await.last("bad"), Some(Phase::Ready));
    // The component was ready, and a check finds that it no longer is.
    available(0);
    let (told, suspects) = (Told::default(), Suspects::from(["bad".to_owned()]));
    let failed = async {
        while told.failure("bad").is_none_or(|text| !text.starts_with("NotReady")) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let mut more = no_more();
    tokio::select! {
        () = engine.pass(Goal::Have(&spec), &suspects, &mut more, &told) => panic!("it is not ready: {:?}", told.last("bad")),
        result = tokio::time::timeout(LIMIT, failed) => result.unwrap(),
    }
    available(1);
    assert_eq!(pass(&engine, &spec, &["bad"]).await.last("bad"), Some(Phase::Ready));
}

#[tokio::test]
async fn a_spec_that_contradicts_itself_is_told_and_changes_nothing() {
    let core = "enabled: spec.core\nnamespace: NS\nsources: [{manifests: manifests/good.yaml}]\n";
    let user =
        "enabled: spec.bad\ndependsOn: [core]\nnamespace: NS\nsources: [{manifests: manifests/bad.yaml}]\n";
    let lab = Lab::new(
        "contradiction",
        &[
            ("components/core.yaml", core),
            ("manifests/good.yaml", MAP),
            ("components/bad.yaml", user),
            ("manifests/bad.yaml", BAD_MAP),
        ],
    );
    let engine = lab.engine().await;
    pass(&engine, &json!({"core": true, "bad": true}), &[]).await;
    let (told, spec) = (Told::default(), json!({"core": false, "bad": true}));
    pass_until(&engine, &spec, &told, "both conditions", |told| {
        told.failure("bad").is_some_and(|text| text.starts_with("DependencyDisabled: bad needs core"))
            && told.failure("core").is_some_and(|text| text.starts_with("StillNeeded"))
    })
    .await;
    assert!(lab.has("cm/good") && lab.has("cm/bad"));
}
