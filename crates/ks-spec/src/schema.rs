//! Whether a spec has the types of the schema. The API server checks what is written; objects may be older than the schema.

use std::sync::OnceLock;

use serde_json::Value;

const DEFINITION: &str = include_str!("../../../deploy/ks-installer/crd.yaml");

/// What is wrong with a spec.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    /// What cannot be meant: nothing is done until it is mended. Each begins with its path.
    pub wrong: Vec<String>,
    /// Keys that nothing reads.
    pub unknown: Vec<String>,
}

/// Compares a spec with the schema.
pub fn check(spec: &Value, known: &[String]) -> Problems {
    let mut problems = Problems::default();
    look(schema(), spec, "spec", &mut problems);
    // Payloads may have components of their own, with keys of their own.
    problems.unknown.retain(|key| !known.iter().any(|path| is_along(&format!("spec.{path}"), key)));
    problems
}

/// Paths of the settings that switch a component on. Network policies are a setting of another component.
pub fn switches() -> Vec<String> {
    let mut found = Vec::new();
    collect(schema(), "", &mut found);
    found.retain(|path| path != "network.networkpolicy.enabled");
    found
}

fn collect(schema: &Value, path: &str, found: &mut Vec<String>) {
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        if key == "enabled" {
            found.push(path);
        } else {
            collect(inner, &path, found);
        }
    }
}

/// Whether one path leads through the other.
fn is_along(path: &str, other: &str) -> bool {
    let inside = |outer: &str, inner: &str| inner == outer || inner.starts_with(&format!("{outer}."));
    inside(path, other) || inside(other, path)
}

fn schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let definition: Value = serde_saphyr::from_str(DEFINITION).unwrap_or_default();
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone()
    })
}

fn look(schema: &Value, value: &Value, path: &str, problems: &mut Problems) {
    if value.is_null() {
        return;
    }
    if let Some(kind) = schema["type"].as_str()
        && kind != kind_of(value)
        && !(kind == "number" && kind_of(value) == "integer")
    {
        let found = kind_of(value);
        return problems.wrong.push(format!(
            "{path} must be {} {kind}, and is {} {found}",
            article(kind),
            article(found)
        ));
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        let names: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        return problems.wrong.push(format!("{path} must be one of {}, and is {value}", names.join(", ")));
    }
    let (Some(properties), Value::Object(map)) = (schema["properties"].as_object(), value) else { return };
    // A component's own settings are its templates' business; the keys beside them are named.
    let is_open = properties.contains_key("enabled");
    for (key, value) in map {
        let path = format!("{path}.{key}");
        match properties.get(key) {
            Some(schema) => look(schema, value, &path, problems),
            None if is_open => {}
            None => problems.unknown.push(path),
        }
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn article(kind: &str) -> &'static str {
    if kind.starts_with(['a', 'i', 'o']) { "an" } else { "a" }
}
