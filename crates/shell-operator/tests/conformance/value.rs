//! Compares actual values with the values that a case expects.

use serde_json::Value;

/// Whether `actual` has everything that `expected` names: objects may have more keys, lists have the same length.
pub(crate) fn covers(actual: &Value, expected: &Value) -> bool {
    match (actual, expected) {
        (Value::Object(actual), Value::Object(expected)) => {
            expected.iter().all(|(key, wanted)| actual.get(key).is_some_and(|value| covers(value, wanted)))
        }
        (Value::Array(actual), Value::Array(expected)) => {
            actual.len() == expected.len()
                && actual.iter().zip(expected).all(|(value, wanted)| covers(value, wanted))
        }
        (Value::Number(actual), Value::Number(expected)) => actual.as_f64() == expected.as_f64(),
        (actual, expected) => actual == expected,
    }
}

/// Fails when `actual` does not cover `expected`.
pub(crate) fn expect(actual: &Value, expected: &Value) -> Result<(), String> {
    if covers(actual, expected) { Ok(()) } else { Err(format!("expected {expected}\n but it is {actual}")) }
}

/// Fails unless `actual` and `expected` are the same.
#[expect(clippy::needless_pass_by_value, reason = "most of what is compared is made for it")]
pub(crate) fn same<T: PartialEq + std::fmt::Debug>(actual: T, expected: T) -> Result<(), String> {
    if actual == expected { Ok(()) } else { Err(format!("expected {expected:?}\n but it is {actual:?}")) }
}

/// Fails unless every one of `parts` is in `text`.
pub(crate) fn contains(text: &str, parts: &[String]) -> Result<(), String> {
    match parts.iter().find(|part| !text.contains(part.as_str())) {
        None => Ok(()),
        Some(part) => Err(format!("{part:?} is not in:\n{text}")),
    }
}

/// Fails unless `result` is an error that has every one of `parts`.
pub(crate) fn refused<T: std::fmt::Debug>(
    result: Result<T, impl ToString>,
    parts: &[String],
) -> Result<(), String> {
    match result {
        Ok(value) => Err(format!("it was accepted: {value:?}")),
        Err(error) => contains(&error.to_string(), parts),
    }
}
