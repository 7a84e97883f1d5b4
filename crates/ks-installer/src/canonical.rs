//! Converts values to a canonical form, so that equal values have equal checksums.

use serde_json::Value;

/// The value with sorted keys, which does not depend on their original order.
pub(crate) fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<_> = map.iter().collect();
            keys.sort_by_key(|(key, _)| *key);
            keys.into_iter().map(|(key, value)| (key.clone(), canonical(value))).collect()
        }
        Value::Array(list) => list.iter().map(canonical).collect(),
        other => other.clone(),
    }
}
