//! Reading a patch file: documents, their keys, and what is wrong with them.

use serde_json::{Map, Value};

use super::operation::{Action, Operation, Propagation};
use crate::jq::Filter;
use crate::yaml::{self, Dialect, Node};

const KEYS: [&str; 12] = [
    "operation",
    "apiVersion",
    "kind",
    "namespace",
    "name",
    "subresource",
    "object",
    "jqFilter",
    "mergePatch",
    "jsonPatch",
    "ignoreMissingObject",
    "ignoreHookError",
];

/// Reads a stream of JSON objects, or YAML documents. All wrong operations are reported together.
pub fn parse(text: &str) -> Result<Vec<Operation>, String> {
    let mut operations = Vec::new();
    let mut problems = Vec::new();
    let documents = documents(text).map_err(|error| format!("got bad object patches: {error}"))?;
    for (position, document) in documents.into_iter().enumerate() {
        match operation(document) {
            Ok(operation) => operations.push(operation),
            Err(problem) => problems.push(format!("operation {}: {problem}", position + 1)),
        }
    }
    if problems.is_empty() {
        Ok(operations)
    } else {
        Err(format!("got bad object patches: {}", problems.join("; ")))
    }
}

/// Keys whose value is a text, whatever it looks like: a name may be `123` or `on`.
const TEXTS: [&str; 7] = ["operation", "apiVersion", "kind", "namespace", "name", "subresource", "jqFilter"];
/// Keys whose value is true or false, in any of YAML's spellings.
const FLAGS: [&str; 2] = ["ignoreMissingObject", "ignoreHookError"];

fn documents(text: &str) -> Result<Vec<Value>, String> {
    let json: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(text).into_iter().collect();
    let documents = match json {
        Ok(documents) => documents,
        Err(json) => yaml_documents(text).map_err(|yaml| {
            // A text that begins like JSON is mostly intended as JSON: then both reasons are of use.
            let both = text.trim_start().starts_with('{');
            if both { format!("as JSON: {json}; as YAML: {yaml}") } else { yaml }
        })?,
    };
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

fn yaml_documents(text: &str) -> Result<Vec<Value>, String> {
    yaml::documents(text, Dialect::Structured)?.iter().map(yaml_document).collect()
}

fn yaml_document(document: &Node) -> Result<Value, String> {
    let Node::Map(entries) = document else { return document.to_json(Dialect::Structured) };
    let mut map = Map::new();
    for (key, node) in entries {
        let mut value = node.to_json(Dialect::Structured)?;
        if let (Node::Scalar(scalar), false) = (node, value.is_null()) {
            if TEXTS.contains(&key.text.as_str()) {
                value = Value::String(scalar.text.clone());
            } else if FLAGS.contains(&key.text.as_str()) {
                value = scalar.to_json(Dialect::Text)?;
            }
        }
        map.insert(key.text.clone(), value);
    }
    Ok(Value::Object(map))
}

fn operation(document: Value) -> Result<Operation, String> {
    let Value::Object(mut map) = document else { return Err("must be an object".to_owned()) };
    let unknown: Vec<&str> = map.keys().map(String::as_str).filter(|key| !KEYS.contains(key)).collect();
    if !unknown.is_empty() {
        return Err(format!("unknown keys: {}; known are {}", unknown.join(", "), KEYS.join(", ")));
    }
    let name = text(&map, "operation")?.ok_or("'operation' is required")?;
    let action = match name.as_str() {
        "Create" => Action::Create(object(&mut map)?),
        "CreateIfNotExists" => Action::CreateIfNotExists(object(&mut map)?),
        "CreateOrUpdate" => Action::CreateOrUpdate(object(&mut map)?),
        "Delete" => Action::Delete(Propagation::Foreground),
        "DeleteInBackground" => Action::Delete(Propagation::Background),
        "DeleteNonCascading" => Action::Delete(Propagation::Orphan),
        "JQPatch" => {
            let filter = text(&map, "jqFilter")?.ok_or("'jqFilter' is required for JQPatch")?;
            Action::JqPatch(Filter::compile(&filter).map_err(|error| error.to_string())?)
        }
        "MergePatch" => Action::MergePatch(structure(&mut map, "mergePatch", Value::is_object, "an object")?),
        "JSONPatch" => {
            let patch = structure(&mut map, "jsonPatch", Value::is_array, "a list")?;
            check_json_patch(&patch)?;
            Action::JsonPatch(patch)
        }
        other => {
            return Err(format!(
                "unknown operation '{other}'; known are Create, CreateIfNotExists, CreateOrUpdate, Delete, \
                 DeleteInBackground, DeleteNonCascading, JQPatch, MergePatch, JSONPatch"
            ));
        }
    };
    let subresource = text(&map, "subresource")?.map(|name| name.trim_start_matches('/').to_owned());
    let ignore_missing_object = flag(&map, "ignoreMissingObject")? && action.is_patch();
    let operation = Operation {
        api_version: text(&map, "apiVersion")?,
        kind: text(&map, "kind")?.unwrap_or_default(),
        namespace: text(&map, "namespace")?.unwrap_or_default(),
        name: text(&map, "name")?.unwrap_or_default(),
        subresource: subresource.filter(|name| !name.is_empty()),
        action,
        ignore_missing_object,
        ignore_hook_error: flag(&map, "ignoreHookError")?,
    };
    identify(operation)
}

/// The metadata of an object to create identifies it; for other operations, the outer keys do.
fn identify(mut operation: Operation) -> Result<Operation, String> {
    if let Action::Create(object) | Action::CreateIfNotExists(object) | Action::CreateOrUpdate(object) =
        &operation.action
    {
        let at = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        operation.api_version = at("/apiVersion").or(operation.api_version);
        operation.kind = at("/kind").unwrap_or_default();
        operation.namespace = at("/metadata/namespace").unwrap_or_default();
        operation.name = at("/metadata/name").unwrap_or_default();
        if operation.name.is_empty() && at("/metadata/generateName").is_none() {
            return Err("'object.metadata.name' is required".to_owned());
        }
    }
    let shown = operation.action.name();
    for (key, value) in [("kind", &operation.kind), ("name", &operation.name)] {
        if value.is_empty() && !(key == "name" && matches!(operation.action, Action::Create(_))) {
            return Err(format!("'{key}' is required for {shown}"));
        }
    }
    let parts = [&operation.namespace, &operation.name].into_iter().chain(&operation.subresource);
    for part in parts.filter(|part| !part.is_empty()) {
        check_path_part(part)?;
    }
    Ok(operation)
}

/// Names become parts of the address of a request: a name that points elsewhere is refused.
fn check_path_part(name: &str) -> Result<(), String> {
    let bad = |c: char| "/%?#".contains(c) || c.is_whitespace() || c.is_control();
    if name == "." || name == ".." || name.contains(bad) {
        return Err(format!("'{name}' cannot be a name"));
    }
    Ok(())
}

fn object(map: &mut Map<String, Value>) -> Result<Value, String> {
    let object = structure(map, "object", Value::is_object, "an object")?;
    if object.as_object().is_some_and(Map::is_empty) {
        return Err("'object' must not be empty".to_owned());
    }
    Ok(object)
}

/// The value under `key`; a string is read as YAML or JSON.
fn structure(
    map: &mut Map<String, Value>,
    key: &str,
    fits: impl Fn(&Value) -> bool,
    expected: &str,
) -> Result<Value, String> {
    let value = map.remove(key).ok_or_else(|| format!("'{key}' is required"))?;
    let value = match value {
        Value::String(text) => yaml::value(&text, Dialect::Text).map_err(|why| format!("'{key}': {why}"))?,
        other => other,
    };
    if fits(&value) { Ok(value) } else { Err(format!("'{key}' must be {expected}")) }
}

fn check_json_patch(patch: &Value) -> Result<(), String> {
    let steps = patch.as_array().map(Vec::as_slice).unwrap_or_default();
    if steps.is_empty() {
        return Err("'jsonPatch' must have at least one step".to_owned());
    }
    for (position, step) in steps.iter().enumerate() {
        for key in ["op", "path"] {
            if step.get(key).and_then(Value::as_str).is_none() {
                return Err(format!("'jsonPatch[{position}].{key}' is required"));
            }
        }
    }
    Ok(())
}

fn text(map: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
        Some(_) => Err(format!("'{key}' must be a string")),
    }
}

fn flag(map: &Map<String, Value>, key: &str) -> Result<bool, String> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(format!("'{key}' must be true or false")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_file_is_understood() {
        let body = include_str!("../../tests/fixtures/recorded/cases/patches/hook.body");
        let yaml = body.split_once("<<M\n").unwrap().1.trim_end().trim_end_matches('M');
        let operations = parse(&yaml.replace("$NSX", "ns")).unwrap();
        let names: Vec<&str> = operations.iter().map(|operation| operation.action.name()).collect();
        assert_eq!(
            names,
            [
                "CreateOrUpdate",
                "Create",
                "CreateIfNotExists",
                "CreateOrUpdate",
                "MergePatch",
                "JSONPatch",
                "JQPatch",
                "MergePatch",
                "Delete",
                "DeleteInBackground",
                "DeleteNonCascading"
            ]
        );
        assert!(
            operations.iter().all(|operation| operation.namespace == "ns" && operation.kind == "ConfigMap")
        );
        assert!(operations[7].ignore_missing_object);
    }

    #[test]
    fn good_files() {
        for (case, text, count) in [
            (
                "json_stream",
                r#"{"operation":"Delete","kind":"Pod","name":"a"}{"operation":"Delete","kind":"Pod","name":"b"}"#,
                2,
            ),
            ("object_as_yaml_text", "operation: Create\nobject: |\n  kind: Pod\n  metadata: {name: a}\n", 1),
            (
                "object_as_json_text",
                r#"{"operation":"Create","object":"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}"}"#,
                1,
            ),
            ("patch_as_text", "operation: MergePatch\nkind: Pod\nname: a\nmergePatch: '{\"a\":1}'\n", 1),
            (
                "remove_first",
                "{operation: JSONPatch, kind: Pod, name: a, jsonPatch: [{op: remove, path: /a}]}",
                1,
            ),
            ("generated_name", "{operation: Create, object: {kind: Pod, metadata: {generateName: a-}}}", 1),
            ("nothing", "", 0),
            ("only_separators", "---\n---\n", 0),
        ] {
            assert_eq!(parse(text).map(|operations| operations.len()), Ok(count), "{case}");
        }
    }

    #[test]
    fn structures_are_read_as_yaml_v3_reads_them() {
        for (case, patch, expected) in [
            (
                "words",
                "data: {feature: on, country: no}",
                serde_json::json!({ "data": { "feature": "on", "country": "no" } }),
            ),
            ("octal", "spec: {defaultMode: 0644}", serde_json::json!({ "spec": { "defaultMode": 420 } })),
            ("whole_float", "spec: {replicas: 1e1}", serde_json::json!({ "spec": { "replicas": 10 } })),
        ] {
            println!("case {case}");
            let file = format!("operation: MergePatch\nkind: Pod\nname: a\nmergePatch:\n  {patch}\n");
            let Action::MergePatch(patch) = &parse(&file).unwrap()[0].action else {
                panic!("no merge patch")
            };
            assert_eq!(patch.to_string(), expected.to_string(), "{case}");
        }
    }

    #[test]
    fn texts_are_read_as_kubectl_reads_them() {
        let file = "operation: MergePatch\nkind: Pod\nname: a\nmergePatch: |\n  paused: on\n  mode: 0644\n";
        let Action::MergePatch(patch) = &parse(file).unwrap()[0].action else { panic!("no merge patch") };
        assert_eq!(patch.to_string(), r#"{"paused":true,"mode":420}"#);
    }

    #[test]
    fn names_may_look_like_numbers_and_flags_like_words() {
        let file = "operation: JQPatch\nkind: Pod\nnamespace: 007\nname: on\njqFilter: .\nignoreMissingObject: yes\n";
        let operation = &parse(file).unwrap()[0];
        assert_eq!((operation.namespace.as_str(), operation.name.as_str()), ("007", "on"));
        assert!(operation.ignore_missing_object);
    }

    #[test]
    fn a_file_may_hold_thousands_of_documents() {
        let file = "---\noperation: Delete\nkind: Pod\nname: a\n".repeat(3000);
        assert_eq!(parse(&file).unwrap().len(), 3000);
    }

    #[test]
    fn a_missing_object_is_ignored_only_by_patches() {
        let text = "operation: Create\nignoreMissingObject: true\nobject: {kind: Pod, metadata: {name: a}}\n";
        assert!(!parse(text).unwrap()[0].ignore_missing_object);
    }

    #[test]
    fn bad_files() {
        for (case, text, expected) in [
            ("empty_object", "{operation: Create, object: {}}", "must not be empty"),
            ("no_object", "{operation: Create, object: null}", "'object' must be an object"),
            ("no_kind", "{operation: Delete, name: a}", "'kind' is required"),
            ("no_name", "{operation: Delete, kind: Pod}", "'name' is required"),
            ("no_filter", "{operation: JQPatch, kind: Pod, name: a}", "'jqFilter' is required"),
            ("bad_filter", "{operation: JQPatch, kind: Pod, name: a, jqFilter: '.a['}", "compile jqFilter"),
            ("no_patch", "{operation: MergePatch, kind: Pod, name: a}", "'mergePatch' is required"),
            (
                "wrong_case",
                "{operation: jsonPatch, kind: Pod, name: a, jsonPatch: []}",
                "unknown operation 'jsonPatch'",
            ),
            (
                "unknown_key",
                "{operation: Delete, apiversion: v1, kind: Pod, name: a}",
                "unknown keys: apiversion",
            ),
            (
                "no_path",
                "{operation: JSONPatch, kind: Pod, name: a, jsonPatch: [{op: add}]}",
                "jsonPatch[0].path",
            ),
            ("not_yaml", "{{{", "got bad object patches"),
            ("broken_json", "{\"operation\":\"Delete\",}\n{", "as JSON: "),
            (
                "name_that_leads_elsewhere",
                "{operation: Delete, kind: Pod, name: ../../secrets/x}",
                "cannot be a name",
            ),
            (
                "namespace_that_leads_elsewhere",
                "{operation: Create, object: {kind: Pod, metadata: {name: a, namespace: 'a?b'}}}",
                "cannot be a name",
            ),
            ("all_at_once", "{operation: Delete}\n---\n{operation: Nope}", "operation 2: unknown operation"),
        ] {
            println!("case {case}");
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{case}: {error}");
        }
    }
}
