//! Checks the types of fields of `kubeletConfiguration` and `kubeProxyConfiguration`. A component does not start if it gets a
//! text in place of a number.

use super::syntax;
use crate::findings::{At, Findings};
use crate::reader::did_you_mean;
use serde_json::{Map, Value};

/// The keys of every configuration document.
const TYPE_META: [&str; 2] = ["apiVersion", "kind"];

/// The fields of a configuration, one per line: the path and its type.
pub(super) struct Fields {
    lines: &'static str,
    /// The component that reads the configuration.
    program: &'static str,
}

/// The path of a value in the configuration.
#[derive(Default)]
struct Path {
    /// In the format of the rows.
    row: String,
    /// In the format of messages.
    shown: String,
}

impl Fields {
    pub(super) const fn new(lines: &'static str, program: &'static str) -> Self {
        Self { lines, program }
    }

    fn rows(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.lines.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '))
    }

    /// The paths of the fields; a list or a map has the path of its key.
    pub(super) fn paths(&self) -> impl Iterator<Item = &'static str> {
        self.rows().filter_map(|(row, _)| row.split(['[', '{']).next())
    }

    /// Reports unknown fields as warnings, and values of wrong types as errors.
    pub(super) fn check(&self, settings: &Map<String, Value>, at: At<'_>, out: &mut Findings<'_>) {
        self.check_map(settings, &Path::default(), at, out);
    }

    fn check_value(&self, value: &Value, path: &Path, at: At<'_>, out: &mut Findings<'_>) {
        if value.is_null() {
            return;
        }
        if let Some((_, kind)) = self.rows().find(|(row, _)| *row == path.row) {
            return self.check_scalar(value, kind, &path.shown, at, out);
        }
        if self.has_below(path, "[]") {
            let Some(items) = value.as_array() else {
                return self.wrong(value, "a list", &path.shown, at, out);
            };
            for (i, item) in items.iter().enumerate() {
                let path = Path { row: format!("{}[]", path.row), shown: format!("{}[{i}]", path.shown) };
                self.check_value(item, &path, at.item(i), out);
            }
        } else if let Some(entries) = value.as_object() {
            self.check_map(entries, path, at, out);
        } else {
            self.wrong(value, "a map of keys and values", &path.shown, at, out);
        }
    }

    fn check_map(&self, entries: &Map<String, Value>, path: &Path, at: At<'_>, out: &mut Findings<'_>) {
        let has_values = self.has_below(path, "{}");
        for (key, inner) in entries {
            let dot = if path.row.is_empty() { "" } else { "." };
            let row =
                if has_values { format!("{}{{}}", path.row) } else { format!("{}{dot}{key}", path.row) };
            let below = Path { row, shown: format!("{}{dot}{key}", path.shown) };
            if has_values || self.is_field(&below.row) {
                self.check_value(inner, &below, at.key(key), out);
            } else if !(path.row.is_empty() && TYPE_META.contains(&key.as_str())) {
                self.warn_of_unknown(key, path, at.name(key), out);
            }
        }
    }

    fn has_below(&self, path: &Path, with: &str) -> bool {
        let prefix = format!("{}{with}", path.row);
        !path.row.is_empty() && self.rows().any(|(row, _)| row.starts_with(&prefix))
    }

    /// Whether a path is a field or a prefix of a field's path.
    fn is_field(&self, path: &str) -> bool {
        self.rows().any(|(row, _)| {
            row.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '{']))
        })
    }

    fn warn_of_unknown(&self, key: &str, path: &Path, at: At<'_>, out: &mut Findings<'_>) {
        let prefix = if path.row.is_empty() { String::new() } else { format!("{}.", path.row) };
        let known = self
            .rows()
            .filter_map(|(row, _)| row.strip_prefix(prefix.as_str())?.split(['.', '[', '{']).next());
        let hint = did_you_mean(key, known).unwrap_or_else(|| {
            "check the name; a program that does not know a field may refuse to start".to_owned()
        });
        let place = if path.row.is_empty() { String::new() } else { format!(" in `{}`", path.shown) };
        out.warning(at, format!("`{key}` is not known as a setting of {}{place}", self.program), hint);
    }

    fn check_scalar(&self, value: &Value, kind: &str, path: &str, at: At<'_>, out: &mut Findings<'_>) {
        let text = value.as_str();
        let mut words = kind.split(' ');
        match words.next().unwrap_or_default() {
            "bool" if !value.is_boolean() => self.wrong(value, "true or false", path, at, out),
            kind @ ("int32" | "int64" | "uint32") => match value.as_i64() {
                None => self.wrong(value, "a whole number", path, at, out),
                Some(number) => {
                    let fits = match kind {
                        "int32" => i32::try_from(number).is_ok(),
                        "uint32" => u32::try_from(number).is_ok(),
                        _ => true,
                    };
                    if !fits {
                        self.wrong(value, "a number that fits into its field", path, at, out);
                    }
                }
            },
            "float" if !value.is_number() => self.wrong(value, "a number", path, at, out),
            "string" if text.is_none() => self.wrong(value, "a text", path, at, out),
            "duration" if !text.is_some_and(syntax::is_go_duration) => {
                self.wrong(value, "a duration such as \"10s\" or \"5m\"", path, at, out);
            }
            "duration-or-number" if !value.is_i64() && !text.is_some_and(syntax::is_go_duration) => {
                self.wrong(value, "a duration such as \"10s\" or \"5m\"", path, at, out);
            }
            // Go parses a number as a quantity, but not as a text.
            "quantity" if !value.is_number() && !text.is_some_and(syntax::is_quantity) => {
                self.wrong(value, "a quantity such as \"500m\" or \"2Gi\"", path, at, out);
            }
            "quantity-text" if !text.is_some_and(syntax::is_quantity) => {
                self.wrong(value, "a quantity as a text, such as \"500m\" or \"2Gi\"", path, at, out);
            }
            "word" => {
                let words: Vec<&str> = words.collect();
                if text != Some("") && !text.is_some_and(|text| words.contains(&text)) {
                    self.wrong(value, &format!("one of {}", words.join(", ")), path, at, out);
                }
            }
            _ => {}
        }
    }

    fn wrong(&self, value: &Value, wanted: &str, path: &str, at: At<'_>, out: &mut Findings<'_>) {
        let found = match value {
            Value::Array(_) => "a list".to_owned(),
            Value::Object(_) => "a map".to_owned(),
            Value::String(text) => format!("the text `{text}`"),
            other => format!("`{other}`"),
        };
        let wants_text =
            ["a text", "a duration", "a quantity as"].iter().any(|start| wanted.starts_with(start));
        let hint = match value {
            Value::String(text) if wanted == "a list" => format!("write `[{text}]` or one `- item` a line"),
            Value::String(text) if text.parse::<f64>().is_ok() && wanted.contains("number") => {
                "write it without quotes".to_owned()
            }
            Value::String(text) if text.parse::<bool>().is_ok() && wanted == "true or false" => {
                "write it without quotes".to_owned()
            }
            Value::Number(number) if wanted.starts_with("a duration") => {
                format!("write it with its unit, such as {number}s")
            }
            Value::Number(_) | Value::Bool(_) if wants_text => format!("write it in quotes: \"{value}\""),
            _ => format!("{} does not start otherwise", self.program),
        };
        out.error(at, format!("`{path}` must be {wanted}, not {found}"), hint);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_a_known_type_and_stands_once() {
        const KINDS: [&str; 11] = [
            "bool",
            "int32",
            "int64",
            "uint32",
            "float",
            "string",
            "duration",
            "duration-or-number",
            "quantity",
            "quantity-text",
            "word",
        ];
        for lines in [include_str!("../known/kubelet.txt"), include_str!("../known/kube_proxy.txt")] {
            let mut paths = std::collections::BTreeSet::new();
            for (path, kind) in Fields::new(lines, "it").rows() {
                assert!(KINDS.contains(&kind.split(' ').next().unwrap()), "{path} {kind}");
                assert!(paths.insert(path), "{path}");
            }
            assert!(paths.len() > 50);
        }
    }
}
