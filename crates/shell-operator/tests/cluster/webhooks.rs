//! Hooks that answer the API server.

use serde_json::Value;

use crate::control_plane::{free_port, shared};
use crate::operator::{Operator, Setup};

/// An operator outside the cluster, with certificates of its own.
fn setup(namespace: &str) -> Setup {
    let plane = shared();
    plane.kubectl(&format!("create ns {namespace}"));
    Setup::new(plane)
        .flag("--webhook-self-signed")
        .flag(&format!("--namespace={namespace}"))
        .flag("--webhook-external-host=127.0.0.1")
        .flag(&format!("--validating-webhook-configuration-name={namespace}"))
        .flag("--validating-webhook-listen-address=127.0.0.1")
        .flag("--conversion-webhook-listen-address=127.0.0.1")
        .flag(&format!("--validating-webhook-listen-port={}", free_port()))
        .flag(&format!("--conversion-webhook-listen-port={}", free_port()))
}

fn wait_for_log(operator: &Operator, text: &str) {
    operator.wait_for(text, |operator| operator.log().contains(text));
}

#[test]
fn requests_are_allowed_denied_and_changed() {
    let plane = shared();
    plane.kubectl("create ns adm");
    plane.kubectl("label ns adm adm=yes");
    let config = r#"
configVersion: v1
kubernetes:
- {name: secrets, apiVersion: v1, kind: Secret, namespace: {nameSelector: {matchNames: [adm]}}, executeHookOnEvent: [], jqFilter: '.metadata.name', keepFullObjectsInMemory: false}
kubernetesValidating:
- name: check.rec.example.org
  includeSnapshotsFrom: [secrets]
  namespace: {labelSelector: {matchLabels: {adm: "yes"}}}
  rules: [{apiVersions: [v1], apiGroups: [""], resources: [configmaps], operations: [CREATE, UPDATE, DELETE], scope: Namespaced}]
  timeoutSeconds: 5
kubernetesMutating:
- name: change.rec.example.org
  labelSelector: {matchLabels: {mutate: "yes"}}
  namespace: {labelSelector: {matchLabels: {adm: "yes"}}}
  rules: [{apiVersions: [v1], apiGroups: [""], resources: [configmaps], operations: [CREATE]}]"#;
    let body = r#"
keep
if grep -q '"type":"Validating"' $BINDING_CONTEXT_PATH; then
  if grep -q '"name":"fails"' $BINDING_CONTEXT_PATH; then exit 1; fi
  if grep -q '"name":"forbidden"' $BINDING_CONTEXT_PATH; then echo '{"allowed":false,"message":"no such names here"}'; else echo '{"allowed":true,"warnings":["looks odd"]}'; fi > $VALIDATING_RESPONSE_PATH
fi
if grep -q '"type":"Mutating"' $BINDING_CONTEXT_PATH; then
  p=$(printf '[{"op":"add","path":"/data/added","value":"1"}]' | base64 -w0); echo "{\"allowed\":true,\"patch\":\"$p\"}" > $ADMISSION_RESPONSE_PATH
fi"#;
    let operator = setup("adm-op").hook("h", config, body).start();
    wait_for_log(&operator, "MutatingWebhookConfiguration adm-op-hooks is created");
    plane.kubectl("-n adm create cm fine");
    let denied = plane.try_kubectl("-n adm create cm forbidden").unwrap_err();
    assert!(
        denied
            .contains(r#"admission webhook "check.rec.example.org" denied the request: no such names here"#),
        "{denied}"
    );
    let failed = plane.try_kubectl("-n adm create cm fails").unwrap_err();
    assert!(failed.contains("Hook failed"), "{failed}");
    plane.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: changed, namespace: adm, labels: {mutate: 'yes'}}, data: {a: '1'}}");
    assert_eq!(plane.kubectl("-n adm get cm changed -o jsonpath='{.data}'"), r#"{"a":"1","added":"1"}"#);
    let contexts = operator.all_contexts("h");
    let validating: &Value = contexts.iter().find(|context| context["type"] == "Validating").unwrap();
    assert_eq!(validating["binding"], "check.rec.example.org");
    assert_eq!(validating["snapshots"]["secrets"], Value::Array(vec![]));
    assert!(validating["review"]["request"]["object"]["metadata"]["name"].is_string());
    plane.kubectl("delete validatingwebhookconfiguration adm-op-hooks");
    operator.wait_for("the repair", |_| {
        plane.try_kubectl("get validatingwebhookconfiguration adm-op-hooks").is_ok()
    });
}

#[test]
fn objects_are_converted_over_three_versions() {
    let plane = shared();
    let version = |name: &str, stored: bool| {
        format!(
            "{{name: {name}, served: true, storage: {stored}, schema: {{openAPIV3Schema: {{type: object, properties: {{spec: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}}}}}"
        )
    };
    let versions = [version("v1alpha1", false), version("v1beta1", false), version("v1", true)].join(", ");
    let crd = format!(
        "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: things.rec.example.org}}, spec: {{group: rec.example.org, scope: Cluster, names: {{plural: things, singular: thing, kind: Thing}}, versions: [{versions}]}}}}"
    );
    let config = "configVersion: v1\nkubernetesCustomResourceConversion:\n\
        - {name: up1, crdName: things.rec.example.org, conversions: [{fromVersion: v1alpha1, toVersion: v1beta1}]}\n\
        - {name: up2, crdName: things.rec.example.org, conversions: [{fromVersion: v1beta1, toVersion: v1}]}\n\
        - {name: down, crdName: things.rec.example.org, conversions: [{fromVersion: v1, toVersion: v1beta1}, {fromVersion: v1beta1, toVersion: v1alpha1}]}";
    let body = r#"jq '{convertedObjects: [.[0] as $c | $c.review.request.objects[] | .apiVersion="rec.example.org/\($c.toVersion)" | .spec.trail += "\($c.fromVersion)>\($c.toVersion) "]}' $BINDING_CONTEXT_PATH > $CONVERSION_RESPONSE_PATH"#;
    let operator = setup("conv-op").hook("conv", config, body).start();
    wait_for_log(&operator, "there is no CustomResourceDefinition things.rec.example.org yet");
    plane.apply(&crd);
    wait_for_log(&operator, "CustomResourceDefinition things.rec.example.org is converted by hooks now");
    plane.kubectl("wait --for=condition=Established crd/things.rec.example.org");
    let thing =
        "{apiVersion: rec.example.org/v1alpha1, kind: Thing, metadata: {name: t}, spec: {trail: \"\"}}";
    operator.wait_for("the object", |_| plane.try_kubectl(&format!("create -f - <<< '{thing}'")).is_ok());
    let trail = |version: &str| {
        plane.kubectl(&format!("get things.{version}.rec.example.org t -o jsonpath='{{.spec.trail}}'"))
    };
    assert_eq!(trail("v1"), "v1alpha1>v1beta1 v1beta1>v1 ");
    assert_eq!(trail("v1alpha1"), "v1alpha1>v1beta1 v1beta1>v1 v1>v1beta1 v1beta1>v1alpha1 ");
}
