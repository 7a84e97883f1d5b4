//! Tests charts, which the helm binary renders.

use ks_installer::engine::Phase;
use serde_json::json;

use crate::cluster::audit;
use crate::cluster::lab::{Lab, Told, pass, pass_until};

const CHART: &str = "apiVersion: v2\nname: c\nversion: 0.1.0\n";
/// A password that differs in each rendering, and a map without a namespace.
const TEMPLATE: &str = "\
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-random}
stringData: {word: {{ randAlphaNum 20 }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-map, labels: {kube: {{ .Capabilities.KubeVersion.Version }}}}
data: {replicas: {{ .Values.replicas | quote }}, image: {{ .Values.image }}}
";
const COMPONENT: &str = "\
enabled: spec.c.enabled
namespace: NS
inputs: [c]
keep: [{kind: Secret, name: r-random}]
sources:
- chart: charts/c
  release: r
  values: |
    replicas: {{ spec.c.replicas | default(1) }}
    image: {{ image('quay.io/a/b:1') }}
";

fn chart(name: &str) -> Lab {
    let files = [
        ("components/c.yaml", COMPONENT),
        ("charts/c/Chart.yaml", CHART),
        ("charts/c/templates/all.yaml", TEMPLATE),
    ];
    Lab::new(name, &files)
}

#[tokio::test]
async fn a_chart_gets_values_from_the_spec_and_what_is_random_is_kept() {
    let lab = chart("chart");
    let spec = |replicas: u8| json!({"c": {"enabled": true, "replicas": replicas}, "local_registry": "r.local:5000"});
    pass(&lab.engine().await, &spec(2), &[]).await;
    let map = |path: &str| lab.kubectl(&format!("get cm r-map -o jsonpath='{{{path}}}'"));
    assert_eq!(
        (map(".data.replicas"), map(".data.image")),
        ("2".to_owned(), "r.local:5000/a/b:1".to_owned())
    );
    assert!(map(".metadata.labels.kube").starts_with("v1."));
    let before = (lab.kubectl("get secret r-random -o jsonpath='{.data}'"), audit::requests("chart").len());
    pass(&lab.engine().await, &spec(3), &[]).await;
    assert_eq!(audit::writes(&audit::requests("chart")[before.1..]), ["patch configmaps/r-map"]);
    assert_eq!(lab.kubectl("get secret r-random -o jsonpath='{.data}'"), before.0);
}

#[tokio::test]
async fn a_broken_chart_is_told_in_helms_words() {
    let lab = chart("chart-broken");
    lab.payload_of(&[("charts/c/templates/bad.yaml", "{{ fail \"no such storage\" }}")]);
    let told = Told::default();
    pass_until(&lab.engine().await, &json!({"c": {"enabled": true}}), &told, "helm's words", |told| {
        told.failure("c").is_some_and(|text| text.contains("charts/c") && text.contains("no such storage"))
    })
    .await;
    assert_ne!(told.last("c"), Some(Phase::Ready));
}

/// One hook that is applied as an ordinary object, and one that only helm would use.
const HOOKS: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: rules, annotations: {helm.sh/hook: pre-install, helm.sh/hook-weight: '1', own: 'yes'}}
data: {a: b}
---
apiVersion: v1
kind: Secret
metadata: {name: step, annotations: {helm.sh/hook: post-install}}
stringData: {a: b}
";

#[tokio::test]
async fn hooks_of_kinds_that_are_named_are_objects_and_others_are_left_out() {
    let component = COMPONENT.replace("  release: r\n", "  release: r\n  hooks: [ConfigMap]\n");
    let files = [
        ("components/c.yaml", component.as_str()),
        ("charts/c/Chart.yaml", CHART),
        ("charts/c/templates/all.yaml", TEMPLATE),
        ("charts/c/templates/hooks.yaml", HOOKS),
    ];
    let lab = Lab::new("chart-hooks", &files);
    pass(&lab.engine().await, &json!({"c": {"enabled": true}}), &[]).await;
    assert_eq!(lab.kubectl("get cm rules -o jsonpath='{.metadata.annotations}'"), r#"{"own":"yes"}"#);
    assert!(lab.has("cm r-map") && !lab.has("secret step"));
    pass(&lab.engine().await, &json!({"c": {"enabled": false}}), &[]).await;
    assert!(!lab.has("cm rules"));
}
