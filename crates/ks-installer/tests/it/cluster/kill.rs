//! Tests that the next run resumes after a crash at any time.

use std::time::Duration;

use ks_installer::engine::{Goal, Suspects};
use serde_json::{Value, json};

use crate::cluster::lab::{Lab, Told, entries, no_more, pass};

const OBJECTS: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: kills.NS.example.com}
spec:
  group: NS.example.com
  scope: Namespaced
  names: {kind: Kill, plural: kills, singular: kill}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
{apiVersion: NS.example.com/v1, kind: Kill, metadata: {name: k}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {v: '{{ spec.v | default(1) }}'}}
---
{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {word: '{{ generated.word }}'}}
{% if not spec.v %}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: old}}
{% endif %}
";
const COMPONENT: &str = "\
enabled: spec.on
inputs: [v]
namespace: NS
generated: [{name: word, password: 8}]
sources: [{manifests: manifests/a.yaml}]
";

/// Runs passes of new engines. Each is dropped later than the previous one, until one ends.
async fn pass_in_pieces(lab: &Lab, spec: &Value) -> usize {
    let mut pieces = 0;
    for millis in (1..).map(|step: u64| step * 3) {
        let engine = lab.engine().await;
        let (told, suspects) = (Told::default(), Suspects::new());
        let mut more = no_more();
        let pass = engine.pass(Goal::Have(spec), &suspects, &mut more, &told);
        if tokio::time::timeout(Duration::from_millis(millis), pass).await.is_ok() {
            break;
        }
        pieces += 1;
    }
    pieces
}

#[tokio::test]
async fn a_pass_that_is_killed_at_any_moment_is_gone_on_with() {
    let files = [("components/a.yaml", COMPONENT), ("manifests/a.yaml", OBJECTS)];
    let (whole, pieces) = (Lab::new("kill-whole", &files), Lab::new("kill-pieces", &files));
    let mut killed = 0;
    for spec in [json!({"on": true}), json!({"on": true, "v": 2}), json!({}), json!({"on": true})] {
        pass(&whole.engine().await, &spec, &[]).await;
        killed += pass_in_pieces(&pieces, &spec).await;
        let of = async |lab: &Lab| {
            let inventory = lab.engine().await.inventories().get("a");
            inventory
                .map(|inventory| (inventory.ready, entries(&inventory).join("\n").replace(&lab.name, "NS")))
        };
        assert_eq!(of(&pieces).await, of(&whole).await, "{spec}");
        for what in ["cm/a", "cm/old", "secret/s", "crd/kills.NS.example.com"] {
            let [here, there] = [&pieces, &whole].map(|lab| lab.has(&what.replace("NS", &lab.name)));
            assert_eq!(here, there, "{what} for {spec}");
        }
    }
    assert!(killed >= 8, "killed {killed} times only");
}
