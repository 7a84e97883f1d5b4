//! Tests releases with the helm binary: it lists, shows and upgrades what ks-installer has installed, and vice versa.

use std::process::Command;

use ks_installer::engine::Phase;
use serde_json::{Value, json};

use crate::cluster::lab::{Lab, Told, pass, pass_until};
use crate::cluster::{audit, programs};

const COMPONENT: &str = "\
enabled: spec.c.enabled
namespace: NS
inputs: [c]
readyWithinSeconds: 1
sources:
- chart: charts/c
  release: r
  record: true
  values: |
    size: {{ spec.c.size | default(1) }}
    pod: {{ spec.c.pod | default(false) | tojson }}
";
const CHART: &str = "{apiVersion: v2, name: c, version: 0.1.0, appVersion: 7}";
const VALUES: &str = "{size: 0, pod: false, color: blue}";
/// Another version of YAML reads this text as a truth value. It must stay a text.
const TEMPLATE: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-map}
data: {size: {{ .Values.size | quote }}, color: {{ .Values.color }}, said: 'on'}
{{ if .Values.pod }}
---
apiVersion: v1
kind: Pod
metadata: {name: {{ .Release.Name }}-pod}
spec: {containers: [{name: a, image: a}]}
{{ end }}
";
const DEFINITION: &str = "\
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.NS.example.com}, \
spec: {group: NS.example.com, scope: Namespaced, names: {kind: Thing, plural: things, singular: thing}, \
versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}
";

fn chart(name: &str) -> Lab {
    Lab::new(
        name,
        &[
            ("components/c.yaml", COMPONENT),
            ("charts/c/Chart.yaml", CHART),
            ("charts/c/values.yaml", VALUES),
            ("charts/c/templates/all.yaml", TEMPLATE),
            ("charts/c/crds/things.yaml", DEFINITION),
        ],
    )
}

fn spec(size: u64) -> Value {
    json!({"c": {"enabled": true, "size": size}})
}

impl Lab {
    /// Output of the helm binary in this namespace. `CHART` is the path of the chart.
    fn helm(&self, line: &str) -> String {
        let chart = self.payload_dir().join("charts/c").display().to_string();
        let home = tempfile::TempDir::new().unwrap();
        let mut command = Command::new(programs::find("helm-", "helm"));
        command.args(line.split(' ').map(|word| if word == "CHART" { &chart } else { word }));
        command.args(["--namespace", &self.name]).env("KUBECONFIG", self.kubeconfig());
        let output = command.env("HOME", home.path()).output().unwrap();
        let (out, error) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "helm {line}: {error}");
        out
    }

    fn helm_json(&self, line: &str) -> Value {
        serde_json::from_str(&self.helm(&format!("{line} --output json"))).unwrap()
    }

    /// Number and status of each revision.
    fn history(&self) -> Vec<String> {
        let history = self.helm_json("history r");
        let line = |one: &Value| format!("{} {}", one["revision"], one["status"].as_str().unwrap());
        history.as_array().unwrap().iter().map(line).collect()
    }

    fn size(&self) -> String {
        self.kubectl("get cm r-map -o jsonpath='{.data.size}'")
    }
}

#[tokio::test]
async fn helm_sees_what_was_installed_and_its_upgrade_works_and_is_put_back() {
    let lab = chart("helm");
    let engine = lab.engine().await;
    assert_eq!(pass(&engine, &spec(2), &[]).await.last("c"), Some(Phase::Ready));
    let list = lab.helm_json("list");
    for (key, expected) in
        [("name", "r"), ("status", "deployed"), ("revision", "1"), ("chart", "c-0.1.0"), ("app_version", "7")]
    {
        assert_eq!(list[0][key], expected, "{list}");
    }
    assert_eq!(lab.helm_json("status r")["info"]["status"], "deployed");
    assert_eq!(lab.helm_json("get values r"), json!({"size": 2, "pod": false}));
    assert_eq!(lab.helm_json("get values r --all"), json!({"size": 2, "pod": false, "color": "blue"}));
    let manifest = lab.helm("get manifest r");
    assert!(manifest.contains("r-map") && !manifest.contains("CustomResourceDefinition"), "{manifest}");

    // Without a change, there is no request. A change adds a revision.
    let before = audit::requests("helm").len();
    pass(&engine, &spec(2), &[]).await;
    assert_eq!(audit::requests("helm").len(), before);
    pass(&engine, &spec(3), &[]).await;
    assert_eq!(lab.history(), ["1 superseded", "2 deployed"]);

    // A user upgrades with helm. The next check restores the spec in a new revision.
    lab.helm("upgrade r CHART --reuse-values --set size=9");
    assert_eq!((lab.size().as_str(), lab.history().len()), ("9", 3));
    assert!(lab.has("crd/things.helm.example.com"), "helm took the definition for its own");
    pass(&engine, &spec(3), &["c"]).await;
    assert_eq!(lab.size(), "3");
    assert_eq!(lab.history(), ["1 superseded", "2 superseded", "3 superseded", "4 deployed"]);
    lab.helm("rollback r 1");
    assert_eq!(lab.size(), "2");
    pass(&engine, &spec(3), &["c"]).await;
    assert_eq!((lab.size().as_str(), lab.history().len()), ("3", 6));

    let told = pass(&engine, &json!({"c": {"enabled": false}}), &[]).await;
    assert_eq!(told.last("c"), Some(Phase::Removed));
    assert_eq!(lab.helm_json("list --all"), json!([]));
    assert!(!lab.has("secret -l owner=helm") && !lab.has("cm/r-map"));
}

#[tokio::test]
async fn a_release_that_helm_installed_is_taken_over_without_a_change() {
    let lab = chart("helm-adopt");
    lab.helm("install r CHART --set size=2,pod=false");
    let before = audit::requests("helm-adopt").len();
    let engine = lab.engine().await;
    assert_eq!(pass(&engine, &spec(2), &[]).await.last("c"), Some(Phase::Ready));
    let writes = audit::writes(&audit::requests("helm-adopt")[before..]);
    assert!(writes.iter().all(|write| write.contains(" secrets/")), "{writes:?}");
    assert_eq!(lab.history(), ["1 superseded", "2 deployed"]);
    pass(&engine, &json!({"c": {"enabled": false}}), &[]).await;
    assert_eq!(lab.helm_json("list --all"), json!([]));
}

#[tokio::test]
async fn what_fails_is_recorded_as_failed_once_and_the_history_is_bounded() {
    let lab = chart("helm-history");
    let engine = lab.engine().await;
    pass(&engine, &spec(1), &[]).await;
    // A pod that no node starts.
    let (told, failures) = (Told::default(), std::sync::Mutex::new(std::collections::BTreeSet::new()));
    let broken = json!({"c": {"enabled": true, "pod": true}});
    pass_until(&engine, &broken, &told, "two failures", |told| {
        // Each attempt writes the revision again with its time of deployment.
        if told.failure("c").is_some() {
            failures.lock().unwrap().insert(lab.kubectl(
                "get secret sh.helm.release.v1.r.v2 -o jsonpath='{.metadata.labels.status} {.metadata.resourceVersion}'",
            ));
        }
        failures.lock().unwrap().iter().filter(|seen| seen.starts_with("failed")).count() > 1
    })
    .await;
    assert_eq!(lab.history()[0], "1 deployed");
    assert_eq!(lab.history().len(), 2);
    engine.forget_failures();
    for size in 2..13 {
        pass(&engine, &spec(size), &[]).await;
    }
    let history = lab.history();
    // The first of these passes has reused the number of the failed revision.
    assert_eq!((history.len(), history.last().map(String::as_str)), (10, Some("12 deployed")), "{history:?}");
    assert_eq!(history[0], "3 superseded");
}

#[tokio::test]
async fn while_helm_is_at_work_nothing_is_written_over_it() {
    let lab = chart("helm-busy");
    lab.helm("install r CHART --set size=1");
    lab.kubectl("label secret sh.helm.release.v1.r.v1 --overwrite status=pending-upgrade");
    let (engine, told) = (lab.engine().await, Told::default());
    pass_until(&engine, &spec(2), &told, "the name of the revision", |told| {
        told.failure("c").is_some_and(|text| {
            text.starts_with("OwnedByAnother: Secret helm-busy/sh.helm.release.v1.r.v1")
                && text.contains("helm is at work")
        })
    })
    .await;
    assert_eq!(lab.size(), "1");
    lab.kubectl("label secret sh.helm.release.v1.r.v1 --overwrite status=deployed");
    assert_eq!(pass(&engine, &spec(2), &[]).await.last("c"), Some(Phase::Ready));
    assert_eq!(
        (lab.size(), lab.history()),
        ("2".to_owned(), vec!["1 superseded".to_owned(), "2 deployed".to_owned()])
    );
}
