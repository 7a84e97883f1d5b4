//! Compares objects: digests, containment and differences.

use serde_json::Value;

use crate::canonical::canonical;

/// Metadata fields that change without an edit of the object.
const MOVING: [&str; 5] = ["managedFields", "resourceVersion", "generation", "creationTimestamp", "selfLink"];
/// Annotations that controllers of Kubernetes write.
const REVISION: &str = "deployment.kubernetes.io/revision";

/// A value that changes when an object is edited or re-created, and does not change with its status.
pub fn digest(object: &Value) -> String {
    let mut sum = kk_util::sha256(canonical(&still(object)).to_string());
    sum.truncate(16);
    sum
}

/// The object without the fields that change by themselves.
fn still(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        // The items of a list have no `apiVersion` and no `kind`.
        for key in ["status", "apiVersion", "kind"] {
            map.remove(key);
        }
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in MOVING {
            metadata.remove(field);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(REVISION);
        }
        if metadata.get("annotations").is_some_and(is_empty) {
            metadata.remove("annotations");
        }
    }
    object
}

/// Whether `live` contains all fields of `wanted`. Additional fields are no difference, because the API server and controllers
/// add them.
pub fn contains(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (live, wanted) if is_empty(wanted) => is_empty(live),
        (Value::Object(live), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| match live.get(key) {
                Some(live) => contains(live, wanted),
                None => is_empty(wanted),
            })
        }
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| contains(live, wanted))
        }
        (Value::Number(live), Value::Number(wanted)) => live.as_f64() == wanted.as_f64(),
        _ => live == wanted,
    }
}

/// Paths at which two versions of an object differ, without the fields that change by themselves.
pub fn differences(old: &Value, new: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    compare(&still(old), &still(new), "", &mut paths);
    paths
}

fn compare(old: &Value, new: &Value, path: &str, paths: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let added = new.keys().filter(|key| !old.contains_key(*key));
            for key in old.keys().chain(added) {
                let of = |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                compare(&of(old), &of(new), &format!("{path}.{key}"), paths);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                compare(old, new, &format!("{path}[{index}]"), paths);
            }
        }
        (old, new) if old == new => {}
        _ => paths.push(path.trim_start_matches('.').to_owned()),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_may_have_more_than_is_wanted() {
        for (case, live, wanted, expected) in [
            ("more", json!({"a": 1, "b": 2}), json!({"a": 1}), true),
            ("other", json!({"a": 2}), json!({"a": 1}), false),
            ("missing", json!({}), json!({"a": 1}), false),
            ("missing_empty", json!({}), json!({"a": {}, "b": null, "c": []}), true),
            ("emptied", json!({"a": {"b": 1}}), json!({"a": {}}), false),
            ("longer_list", json!([1, 2]), json!([1]), false),
            ("in_a_list", json!([{"a": 1, "b": 2}]), json!([{"a": 1}]), true),
            ("number", json!(1.0), json!(1), true),
        ] {
            assert_eq!(contains(&live, &wanted), expected, "{case}");
        }
    }

    #[test]
    fn a_status_is_no_change_and_a_field_is_one() {
        let object = json!({"metadata": {"uid": "u", "resourceVersion": "1"}, "spec": {"l": [{"a": 1}]}});
        let mut later = object.clone();
        later["metadata"]["resourceVersion"] = "2".into();
        later["metadata"]["annotations"] = json!({REVISION: "1"});
        later["status"] = json!({"x": 1});
        assert_eq!(digest(&object), digest(&later));
        assert!(differences(&object, &later).is_empty());
        later["spec"]["l"][0]["a"] = 2.into();
        later["spec"]["b"] = true.into();
        assert_ne!(digest(&object), digest(&later));
        assert_eq!(differences(&object, &later), ["spec.l[0].a", "spec.b"]);
        let mut again = object.clone();
        again["metadata"]["uid"] = "v".into();
        assert_ne!(digest(&object), digest(&again));
    }
}
