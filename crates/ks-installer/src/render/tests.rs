use std::fs;

use tempfile::TempDir;

use super::*;
use crate::payload;

const COMPONENT: &str =
    "enabled: 'true'\ninputs: [a.b]\nnamespace: ns\nsources: [{manifests: manifests/m.yaml}]\n";

fn renderer(manifest: &str, kubernetes: &str) -> (TempDir, Renderer) {
    let dir = TempDir::new().unwrap();
    for (path, text) in [("components/c.yaml", COMPONENT), ("manifests/m.yaml", manifest)] {
        fs::create_dir_all(dir.path().join(path).parent().unwrap()).unwrap();
        fs::write(dir.path().join(path), text).unwrap();
    }
    let payload = Arc::new(payload::build(dir.path(), "1", "v3.4.1").unwrap());
    (
        dir,
        Renderer { payload, helm: "helm".into(), kubernetes: kubernetes.to_owned(), nodes: Nodes::default() },
    )
}

async fn objects(manifest: &str, spec: &Value) -> Result<Vec<Value>, String> {
    let (_dir, renderer) = renderer(manifest, "v1.36.0");
    let component = &renderer.payload.components()["c"];
    let inputs = Inputs { spec, generated: &Map::new() };
    renderer.objects(component, inputs).await.map_err(|error| error.to_string())
}

#[test]
fn the_hash_changes_with_every_input_and_with_nothing_else() {
    let (_a, this) = renderer("kind: A", "v1.36.0");
    let (_b, newer) = renderer("kind: A", "v1.37.1");
    let (_c, other) = renderer("kind: B", "v1.36.0");
    let of = |renderer: &Renderer, spec: Value| renderer.hash(&renderer.payload.components()["c"], &spec);
    let hash = of(&this, json!({"a": {"b": {"x": 1, "y": 2}}}));
    assert_eq!(hash, of(&this, json!({"a": {"b": {"y": 2, "x": 1}, "c": 3}, "d": 4})));
    let others = [
        of(&this, json!({"a": {"b": {"x": 2, "y": 2}}})),
        of(&this, json!({"a": {"b": {"x": 1, "y": 2}}, "local_registry": "r"})),
        of(&newer, json!({"a": {"b": {"x": 1, "y": 2}}})),
        of(&other, json!({"a": {"b": {"x": 1, "y": 2}}})),
    ];
    assert!(others.iter().all(|other| *other != hash), "{others:?} {hash}");
}

#[tokio::test]
async fn objects_are_complete_and_in_order() {
    let manifest = "\
{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: own}, spec: {template: {spec: {containers: [{image: 'a/b:1'}]}}}}
---
{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {k: v}}]}
---
{apiVersion: example.com/v1, kind: Wide, metadata: {name: w, namespace: own}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: w}, spec: {scope: Cluster, names: {kind: Wide}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: space, creationTimestamp: null}, status: {}}
";
    let objects = objects(manifest, &json!({"local_registry": "r:5000"})).await.unwrap();
    let ids: Vec<String> = objects.iter().map(|object| crate::api::Id::of(object).to_string()).collect();
    assert_eq!(
        ids,
        ["Namespace space", "CustomResourceDefinition w", "Secret ns/s", "Deployment own/d", "Wide w"]
    );
    assert_eq!(objects[0]["metadata"], json!({"name": "space", "labels": {COMPONENT_LABEL: "c"}}));
    assert_eq!(objects[2]["data"], json!({"k": "dg=="}));
    assert_eq!(objects[3]["spec"]["template"]["spec"]["containers"][0]["image"], "r:5000/a/b:1");
}

#[tokio::test]
async fn what_cannot_be_applied_is_named() {
    for (case, manifest, part, why) in [
        ("no_object", "{a: b}", "manifests/m.yaml", "this is not an object"),
        ("no_yaml", "{a: b", "manifests/m.yaml", ""),
        (
            "twice",
            "{apiVersion: v1, kind: X, metadata: {name: a}}\n---\n{apiVersion: v1, kind: X, metadata: {name: a}}",
            "component c",
            "X ns/a is made twice",
        ),
    ] {
        println!("case {case}");
        let error = objects(manifest, &json!({})).await.unwrap_err();
        assert!(error.contains(part) && error.contains(why), "{case}: {error}");
    }
}

#[tokio::test]
async fn templates_see_their_inputs_only() {
    let manifest = "{apiVersion: v1, kind: X, metadata: {name: 'n{{ spec.a.b }}{{ spec.a.c }}'}}";
    let objects = objects(manifest, &json!({"a": {"b": 1, "c": 2}})).await.unwrap();
    assert_eq!(objects[0]["metadata"]["name"], "n1");
}

#[tokio::test]
async fn a_text_that_yaml_takes_for_a_number_is_refused_and_no_secret_is_quoted() {
    let number = "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {word: 12345678}}";
    let said = objects(number, &json!({})).await.unwrap_err();
    assert!(said.contains("stringData.word") && !said.contains("12345678"), "{said}");
    let nameless = "{apiVersion: v1, kind: Secret, stringData: {word: hidden}}";
    let said = objects(nameless, &json!({})).await.unwrap_err();
    assert!(said.contains("v1 Secret") && !said.contains("hidden"), "{said}");
}
