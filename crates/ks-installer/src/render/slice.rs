//! Selects the part of the spec that a component may read.

use serde_json::{Map, Value};

/// The spec reduced to `paths`, such as `common.monitoring`.
pub(super) fn slice(spec: &Value, paths: &[String]) -> Value {
    let mut slice = Value::Object(Map::new());
    for path in paths {
        let keys: Vec<&str> = path.split('.').collect();
        if let Some(value) = keys.iter().try_fold(spec, |at, key| at.get(key)) {
            insert(&mut slice, &keys, value);
        }
    }
    slice
}

fn insert(into: &mut Value, keys: &[&str], value: &Value) {
    let (Some((key, rest)), Value::Object(map)) = (keys.split_first(), into) else { return };
    if rest.is_empty() {
        map.insert((*key).to_owned(), value.clone());
    } else {
        let next = map.entry((*key).to_owned()).or_insert_with(|| Value::Object(Map::new()));
        insert(next, rest, value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_but_the_inputs_is_seen() {
        let spec = json!({"a": {"b": 1, "c": 2}, "d": {"e": {"f": 3}}, "g": 4});
        let paths = ["a.b", "d.e", "none.of.it", "a.c.too.deep"].map(str::to_owned);
        assert_eq!(slice(&spec, &paths), json!({"a": {"b": 1}, "d": {"e": {"f": 3}}}));
        // A path and another path inside it, in either order.
        for paths in [["a", "a.b"], ["a.b", "a"]] {
            assert_eq!(slice(&spec, &paths.map(str::to_owned)), json!({"a": {"b": 1, "c": 2}}));
        }
    }
}
