//! Reads untyped values and collects every problem with the path of its key.

use std::cell::RefCell;

use serde_json::{Map, Value};

/// Errors and warnings found so far. Shared by reference; the reader that owns it takes them at the end.
#[derive(Default)]
pub(super) struct Problems {
    errors: RefCell<Vec<String>>,
    warnings: RefCell<Vec<String>>,
}

impl Problems {
    pub(super) fn error(&self, path: &str, text: impl AsRef<str>) {
        self.errors.borrow_mut().push(located(path, text.as_ref()));
    }

    pub(super) fn warn(&self, path: &str, text: impl AsRef<str>) {
        self.warnings.borrow_mut().push(located(path, text.as_ref()));
    }

    pub(super) fn into_parts(self) -> (Vec<String>, Vec<String>) {
        (self.errors.into_inner(), self.warnings.into_inner())
    }
}

fn located(path: &str, text: &str) -> String {
    if path.is_empty() { text.to_owned() } else { format!("{path}: {text}") }
}

/// A mapping, its path in the document, and where problems are reported.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    path: &'a str,
    map: &'a Map<String, Value>,
    pub(super) problems: &'a Problems,
}

impl<'a> Fields<'a> {
    /// `value` as a mapping; anything else is reported.
    pub(super) fn new(path: &'a str, value: &'a Value, problems: &'a Problems) -> Option<Self> {
        if let Value::Object(map) = value {
            return Some(Self { path, map, problems });
        }
        problems.error(path, format!("must be of type object, not {}", type_name(value)));
        None
    }

    /// Path of `key` in the document.
    pub(super) fn path(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Reports `text` for `key`.
    pub(super) fn error(&self, key: &str, text: impl AsRef<str>) {
        self.problems.error(&self.path(key), text);
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &'a String> {
        self.map.keys()
    }

    /// Reports every key that is not in `known`.
    pub(super) fn only(&self, known: &[&str]) {
        for key in self.map.keys().filter(|key| !known.contains(&key.as_str())) {
            self.error(key, format!("is a forbidden property; allowed are: {}", known.join(", ")));
        }
    }

    /// Warns about every key that is not in `known`.
    pub(super) fn prefer(&self, known: &[&str]) {
        for key in self.map.keys().filter(|key| !known.contains(&key.as_str())) {
            self.problems.warn(&self.path(key), "is unknown and ignored");
        }
    }

    pub(super) fn string(&self, key: &str) -> Option<&'a str> {
        let value = self.map.get(key)?;
        if value.as_str().is_none() {
            self.wrong_type(key, "string", value);
        }
        value.as_str()
    }

    /// A string that has to be there and not be empty.
    pub(super) fn required(&self, key: &str) -> Option<&'a str> {
        if !self.has(key) {
            self.error(key, "is required");
            return None;
        }
        let text = self.string(key)?;
        if text.is_empty() {
            self.error(key, "must not be empty");
        }
        Some(text)
    }

    pub(super) fn boolean(&self, key: &str, default: bool) -> bool {
        let Some(value) = self.map.get(key) else { return default };
        value.as_bool().unwrap_or_else(|| {
            self.wrong_type(key, "boolean", value);
            default
        })
    }

    /// A whole number; `20.0` is one, `20.5` and `"20"` are not.
    pub(super) fn integer(&self, key: &str) -> Option<i64> {
        let value = self.map.get(key)?;
        #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
        let whole = |float: f64| (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i64);
        let number = value.as_i64().or_else(|| value.as_f64().and_then(whole));
        if number.is_none() {
            self.wrong_type(key, "integer", value);
        }
        number
    }

    /// The list under `key`: each item with its path.
    pub(super) fn list(&self, key: &str) -> Option<Vec<(String, &'a Value)>> {
        let value = self.map.get(key)?;
        let Some(items) = value.as_array() else {
            self.wrong_type(key, "array", value);
            return None;
        };
        let path = self.path(key);
        Some(items.iter().enumerate().map(|(i, item)| (format!("{path}[{i}]"), item)).collect())
    }

    /// A list that has to have at least one item when it is there.
    pub(super) fn filled_list(&self, key: &str) -> Vec<(String, &'a Value)> {
        let items = self.list(key);
        if items.as_ref().is_some_and(Vec::is_empty) {
            self.error(key, "must have at least 1 item");
        }
        items.unwrap_or_default()
    }

    pub(super) fn strings(&self, key: &str) -> Option<Vec<String>> {
        let items = self.list(key)?;
        Some(items.iter().filter_map(|(path, item)| self.text_item(path, item)).collect())
    }

    /// Strings under `key`, at least one when the key is there.
    pub(super) fn filled_strings(&self, key: &str) -> Vec<String> {
        self.filled_list(key).iter().filter_map(|(path, item)| self.text_item(path, item)).collect()
    }

    fn text_item(&self, path: &str, item: &Value) -> Option<String> {
        if item.as_str().is_none() {
            self.problems.error(path, format!("must be of type string, not {}", type_name(item)));
        }
        item.as_str().map(str::to_owned)
    }

    fn wrong_type(&self, key: &str, expected: &str, value: &Value) {
        self.error(key, format!("must be of type {expected}, not {}", type_name(value)));
    }
}

/// The JSON-schema name of a value's type.
pub(super) fn type_name(value: &Value) -> &'static str {
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
