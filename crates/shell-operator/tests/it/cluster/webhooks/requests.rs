//! The requests that hooks get, and the effects of their answers.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{ALLOW, checks, setup, wait_for_log};
use crate::cluster::control_plane::shared;
use crate::cluster::operator::Setup;
use crate::cluster::recorded::{fixtures, normalise};

/// A hook of the recording; it keeps its contexts in `out`.
fn recorded_hook(setup: Setup, name: &str) -> Setup {
    let text = fs::read_to_string(fixtures().join(format!("webhooks/hooks/{name}.sh"))).unwrap();
    let text = text.replacen('\n', &format!("\nexport REC_OUT={}\n", setup.out().display()), 1);
    setup.program(name, &text)
}

/// The contexts in a directory, each once, in order of arrival, with what differs from cluster to cluster replaced.
fn contexts(dir: &Path) -> Vec<String> {
    let mut paths: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut seen = BTreeSet::new();
    let texts = paths.iter().map(|path| {
        let text = normalise(&fs::read_to_string(path).unwrap());
        let user = r#""username":"admin","groups":["system:masters","#;
        let recorded = r#""username":"kubernetes-admin","groups":["kubeadm:cluster-admins","#;
        let mut text = text.replace(user, recorded);
        if let Some(at) = text.find("X509SHA256=").map(|at| at + "X509SHA256=".len()) {
            let end = at + text[at..].find('"').unwrap();
            text.replace_range(at..end, "HASH");
        }
        text
    });
    texts.filter(|text| seen.insert(text.clone())).collect()
}

#[test]
fn hooks_get_the_reviews_that_the_original_gave_them() {
    let plane = shared();
    plane.kubectl("create ns adm");
    plane.kubectl("label ns adm adm=yes");
    let crd = fs::read_to_string(fixtures().join("webhooks/setup.yaml")).unwrap();
    let crd = crd.split("---\n").find(|part| part.contains("CustomResourceDefinition")).unwrap().to_owned();
    let (setup, _) = setup("rec-op");
    let setup = recorded_hook(recorded_hook(setup, "adm"), "conv");
    let operator = setup.flag("--webhook-self-signed").start();
    wait_for_log(&operator, "there is no CustomResourceDefinition things.rec.example.org yet");
    plane.apply(&crd);
    wait_for_log(&operator, "CustomResourceDefinition things.rec.example.org is converted by hooks now");
    plane.kubectl("wait --for=condition=Established crd/things.rec.example.org");
    wait_for_log(&operator, "MutatingWebhookConfiguration rec-op-hooks is created");
    plane.kubectl("-n adm create secret generic s1");
    let works = |line: &str| operator.wait_for(line, |_| plane.try_kubectl(line).is_ok());
    works("-n adm create cm probe");
    plane.kubectl("-n adm delete cm probe");
    for file in fs::read_dir(operator.out()).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    let warned = plane.kubectl("-n adm create cm ok --from-literal=k=1 2>&1");
    assert!(warned.contains("Warning: looks odd"), "{warned}");
    let denied = plane.try_kubectl("-n adm create cm forbidden --from-literal=k=1").unwrap_err();
    let message = r#"admission webhook "check.rec.example.org" denied the request: no such names here"#;
    assert!(denied.contains(message) && denied.contains("Warning: w1"), "{denied}");
    plane.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: mut, namespace: adm, labels: {mutate: 'yes'}}, data: {k: '1'}}");
    assert_eq!(plane.kubectl("-n adm get cm mut -o jsonpath='{.data}'"), r#"{"added":"1","k":"1"}"#);
    plane.kubectl("-n adm delete cm ok");
    plane.apply("{apiVersion: rec.example.org/v1alpha1, kind: Thing, metadata: {name: t, namespace: adm}, spec: {trail: ''}}");
    let trail = |version: &str| {
        plane.kubectl(&format!("-n adm get things.{version}.rec.example.org t -o jsonpath='{{.spec.trail}}'"))
    };
    assert_eq!(trail("v1"), "v1alpha1>v1beta1 v1beta1>v1 ");
    assert_eq!(trail("v1alpha1"), "v1alpha1>v1beta1 v1beta1>v1 v1>v1beta1 v1beta1>v1alpha1 ");
    let mut recorded = contexts(&fixtures().join("webhooks/contexts"));
    // The binding's run at start was before the probe.
    recorded.remove(0);
    let mut now = contexts(&operator.out());
    // Controllers that read all kinds send requests at any time, also for the version that no test requests.
    now.retain(|text| !text.contains(r#""desiredAPIVersion":"rec.example.org/v1beta1""#));
    for text in &now {
        assert!(recorded.contains(text), "nobody recorded {text}");
    }
    let mut rest = now.iter();
    for text in &recorded {
        assert!(rest.any(|now| now == text), "missing, or too early: {text}\n{now:#?}");
    }
}

/// A hook of the shell library: objects of the old version are read, and written, as the new one.
#[test]
fn a_definition_gets_a_new_version_by_a_conversion_in_shell() {
    let plane = shared();
    let schema = "schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}";
    plane.apply(&format!(
        "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: jobs.conv.example.org}}, spec: {{group: conv.example.org, scope: Cluster, names: {{kind: Job, plural: jobs}}, versions: [{{name: v1, served: true, storage: true, {schema}}}, {{name: v2, served: true, storage: false, {schema}}}]}}}}"
    ));
    plane.kubectl("wait --for=condition=Established crd/jobs.conv.example.org");
    let hook = r#"#!/bin/bash
. $FRAMEWORK_DIR/shell_lib.sh
__config__() { echo '{configVersion: v1, kubernetesCustomResourceConversion: [{name: up, crdName: jobs.conv.example.org, conversions: [{fromVersion: v1, toVersion: v2}]}]}'; }
__on_conversion::up() {
  context::jq '{convertedObjects: [.review.request.objects[] | .apiVersion = "conv.example.org/v2" | .spec.when = (.spec.when | join(" "))]}' > $CONVERSION_RESPONSE_PATH
}
hook::run "$@"
"#;
    let (setup, _) = setup("conv-op");
    let framework = format!("FRAMEWORK_DIR={}/shell", env!("CARGO_MANIFEST_DIR"));
    let setup = setup.wrapper(&["env", &framework]).flag("--webhook-self-signed");
    let operator = setup.program("convert", hook).start();
    wait_for_log(&operator, "CustomResourceDefinition jobs.conv.example.org is converted by hooks now");
    plane.apply(
        "{apiVersion: conv.example.org/v1, kind: Job, metadata: {name: j}, spec: {when: ['*', '*/5']}}",
    );
    let when = "get jobs.v2.conv.example.org j -o jsonpath='{.spec.when}'";
    operator.wait_for("the new version", |_| plane.try_kubectl(when).as_deref() == Ok("* */5"));
}

/// The API server waits for a second only, the hook takes longer.
#[test]
fn a_hook_that_the_api_server_gives_up_on_is_counted_and_leaves_no_process() {
    let plane = shared();
    plane.kubectl("create ns given-up");
    plane.kubectl("label ns given-up of=given-up-op");
    let (setup, _) = setup("given-up-op");
    let config = checks("given-up-op").replace("namespace:", "timeoutSeconds: 1, namespace:")
        + "\nsettings: {executionTimeout: 4s}";
    let slow =
        "grep -q '\"name\":\"slow\"' $BINDING_CONTEXT_PATH && { sleep 300 & echo $! > $OUT/child; wait; }\n";
    let operator = setup.flag("--webhook-self-signed").hook("h", &config, &format!("{slow}{ALLOW}")).start();
    wait_for_log(&operator, "ValidatingWebhookConfiguration given-up-op-hooks is created");
    // The API server needs a moment until it sends requests.
    let slow = || plane.try_kubectl("-n given-up create cm slow --dry-run=server");
    operator.wait_for("the refusal", |_| slow().is_err());
    let metric = |text: &str| operator.get("/metrics").unwrap().contains(text);
    operator.wait_for("the metric", |_| metric("shell_operator_webhook_requests_given_up_total"));
    wait_for_log(&operator, "the API server did not wait for the hook's answer");
    operator.wait_for("the end of the run", |_| {
        metric("shell_operator_hook_run_errors_total{binding=\"check.given-up-op.example.org\",hook=\"h\",queue=\"\"} 1")
    });
    let stat = format!("/proc/{}/stat", operator.file("child").trim());
    operator.wait_for("the end of its child", |_| {
        let text = fs::read_to_string(&stat).unwrap_or_default();
        text.is_empty() || text.contains(") Z ")
    });
}
