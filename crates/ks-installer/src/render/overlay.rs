//! Applies the changes of a definition to rendered objects, for charts that render random values or are older than the cluster.

use serde_json::Value;

use super::{Registry, template};
use crate::payload::Overlay;

/// Applies all changes in order.
pub(super) fn apply(
    objects: &mut Vec<Value>,
    overlays: &[Overlay],
    context: &Value,
    registry: &Registry,
) -> Result<(), String> {
    for overlay in overlays {
        let is_meant = |object: &Value| {
            let named = overlay.name.is_empty() || object["metadata"]["name"] == overlay.name.as_str();
            let placed =
                overlay.namespace.is_empty() || object["metadata"]["namespace"] == overlay.namespace.as_str();
            named && placed && object["kind"] == overlay.kind.as_str()
        };
        if overlay.omit {
            objects.retain(|object| !is_meant(object));
        }
        for (path, wanted) in &overlay.set {
            let wanted = match wanted {
                Value::String(text) => Value::String(template::render(text, context, registry)?),
                other => other.clone(),
            };
            let keys: Vec<&str> = path.trim_start_matches('/').split('/').collect();
            objects
                .iter_mut()
                .filter(|object| is_meant(object))
                .for_each(|object| set(object, &keys, &wanted));
        }
    }
    Ok(())
}

/// Sets the value at a path. `*` stands for each item of a list, and `~1` for a slash in a key. Null removes the value.
fn set(here: &mut Value, keys: &[&str], wanted: &Value) {
    let Some((key, rest)) = keys.split_first() else { return here.clone_from(wanted) };
    if *key == "*" {
        return here.as_array_mut().into_iter().flatten().for_each(|item| set(item, rest, wanted));
    }
    let key = key.replace("~1", "/");
    if here.is_null() {
        *here = Value::Object(serde_json::Map::new());
    }
    let Some(map) = here.as_object_mut() else { return };
    if rest.is_empty() && wanted.is_null() {
        map.shift_remove(&key);
    } else {
        set(map.entry(key).or_insert(Value::Null), rest, wanted);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_set_taken_away_and_objects_left_out() {
        let overlays: Vec<Overlay> = serde_json::from_value(json!([
            {"kind": "Hook", "set": {"/webhooks/*/ca": "{{ ca }}", "/metadata/annotations/a.b~1c": "x"}},
            {"kind": "Hook", "name": "two", "set": {"/webhooks/*/old": null, "/spec": {"selector": {}}}},
            {"kind": "Policy", "omit": true},
            {"kind": "Twice", "name": "t", "namespace": "a", "omit": true},
        ]))
        .unwrap();
        let hook = |name: &str| json!({"kind": "Hook", "metadata": {"name": name}, "webhooks": [{"old": 1}, {"old": 2}]});
        let twice = json!({"kind": "Twice", "metadata": {"name": "t"}});
        let policy = json!({"kind": "Policy", "metadata": {"name": "p"}});
        let of_a = json!({"kind": "Twice", "metadata": {"name": "t", "namespace": "a"}});
        let mut objects = vec![hook("one"), policy, of_a, twice.clone(), hook("two")];
        apply(&mut objects, &overlays, &json!({"ca": "CA"}), &Registry::default()).unwrap();
        let metadata = |name: &str| json!({"name": name, "annotations": {"a.b/c": "x"}});
        assert_eq!(
            objects,
            [
                json!({"kind": "Hook", "metadata": metadata("one"), "webhooks": [{"old": 1, "ca": "CA"}, {"old": 2, "ca": "CA"}]}),
                twice,
                json!({"kind": "Hook", "metadata": metadata("two"), "webhooks": [{"ca": "CA"}, {"ca": "CA"}],
                       "spec": {"selector": {}}}),
            ]
        );
    }
}
