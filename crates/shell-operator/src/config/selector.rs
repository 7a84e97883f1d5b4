//! Label and field selectors: their checks and the text that the API server takes.

use std::fmt;

use serde_json::Value;

use super::fields::{Fields, Problems};

/// Labels that objects must have; all requirements have to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LabelSelector(pub Vec<Requirement>);

/// One condition on a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Requirement {
    /// The label has this value.
    Equals(String, String),
    /// The label has one of the values.
    In(String, Vec<String>),
    /// The label is missing or has another value.
    NotIn(String, Vec<String>),
    /// The label is there.
    Exists(String),
    /// The label is not there.
    DoesNotExist(String),
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, requirement) in self.0.iter().enumerate() {
            if position > 0 {
                formatter.write_str(",")?;
            }
            match requirement {
                Requirement::Equals(key, value) => write!(formatter, "{key}={value}")?,
                Requirement::In(key, values) => write!(formatter, "{key} in ({})", values.join(","))?,
                Requirement::NotIn(key, values) => write!(formatter, "{key} notin ({})", values.join(","))?,
                Requirement::Exists(key) => formatter.write_str(key)?,
                Requirement::DoesNotExist(key) => write!(formatter, "!{key}")?,
            }
        }
        Ok(())
    }
}

/// One condition on a field.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldRequirement {
    /// Path of the field, as the API server knows it.
    pub field: String,
    /// Whether the field has to have the value, or must not have it.
    pub equals: bool,
    /// The value.
    pub value: String,
}

impl fmt::Display for FieldRequirement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = if self.equals { "=" } else { "!=" };
        // The API server's own escapes for the separators of a selector.
        let value = self.value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
        write!(formatter, "{}{operator}{value}", self.field)
    }
}

/// Reads a label selector. `None` after a problem that leaves nothing to select by.
pub(super) fn read_labels(path: &str, value: &Value, problems: &Problems) -> Option<LabelSelector> {
    let selector = Fields::new(path, value, problems)?;
    selector.only(&["matchLabels", "matchExpressions"]);
    if selector.is_empty() {
        problems.error(path, "must have matchLabels or matchExpressions");
    }
    let mut requirements = Vec::new();
    let labels_path = selector.path("matchLabels");
    if let Some(labels) =
        selector.get("matchLabels").and_then(|value| Fields::new(&labels_path, value, problems))
    {
        for key in labels.keys() {
            let Some(value) = labels.string(key) else { continue };
            check_key(&labels.path(key), key, problems);
            check_value(&labels.path(key), value, problems);
            requirements.push(Requirement::Equals(key.clone(), value.to_owned()));
        }
    }
    for (path, item) in selector.list("matchExpressions").unwrap_or_default() {
        requirements.extend(read_expression(&path, item, problems));
    }
    requirements.sort_unstable();
    Some(LabelSelector(requirements))
}

fn read_expression(path: &str, item: &Value, problems: &Problems) -> Option<Requirement> {
    let expression = Fields::new(path, item, problems)?;
    expression.only(&["key", "operator", "values"]);
    let key = expression.required("key").map(str::to_owned);
    let operator = expression.required("operator");
    let values = expression.strings("values").unwrap_or_default();
    if let Some(key) = &key {
        check_key(&expression.path("key"), key, problems);
    }
    for value in &values {
        check_value(&expression.path("values"), value, problems);
    }
    let (key, operator) = (key?, operator?);
    let wants_values = matches!(operator, "In" | "NotIn");
    if wants_values && values.is_empty() {
        expression.error("values", format!("must not be empty for the operator {operator}"));
    }
    if !wants_values && !values.is_empty() {
        expression.error("values", format!("must be empty for the operator {operator}"));
    }
    match operator {
        "In" => Some(Requirement::In(key, values)),
        "NotIn" => Some(Requirement::NotIn(key, values)),
        "Exists" => Some(Requirement::Exists(key)),
        "DoesNotExist" => Some(Requirement::DoesNotExist(key)),
        other => {
            let text = format!("'{other}' is unsupported; supported are In, NotIn, Exists, DoesNotExist");
            expression.error("operator", text);
            None
        }
    }
}

/// Reads a field selector.
pub(super) fn read_fields(path: &str, value: &Value, problems: &Problems) -> Vec<FieldRequirement> {
    let Some(selector) = Fields::new(path, value, problems) else { return Vec::new() };
    selector.only(&["matchExpressions"]);
    if !selector.has("matchExpressions") {
        selector.error("matchExpressions", "is required");
    }
    selector
        .list("matchExpressions")
        .unwrap_or_default()
        .iter()
        .filter_map(|(path, item)| read_field(&Fields::new(path, item, problems)?))
        .collect()
}

fn read_field(fields: &Fields) -> Option<FieldRequirement> {
    fields.only(&["field", "operator", "value"]);
    let field = fields.required("field");
    let operator = fields.required("operator");
    if !fields.has("value") {
        fields.error("value", "is required");
    }
    let value = fields.string("value");
    let equals = match operator? {
        "=" | "==" | "Equals" => true,
        "!=" | "NotEquals" => false,
        other => {
            let text = format!("'{other}' is unsupported; supported are =, ==, Equals, !=, NotEquals");
            fields.error("operator", text);
            return None;
        }
    };
    Some(FieldRequirement { field: field?.to_owned(), equals, value: value?.to_owned() })
}

/// A label's name: letters, digits, `-`, `_`, `.`, with an optional DNS prefix (Kubernetes' qualified name).
fn check_key(path: &str, key: &str, problems: &Problems) {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let prefix_ok = prefix.is_none_or(|prefix| prefix.len() <= 253 && is_dns_subdomain(prefix));
    if name.is_empty() || name.len() > 63 || !is_label_text(name) || !prefix_ok {
        problems.error(path, format!("'{key}' is not a valid label name"));
    }
}

fn check_value(path: &str, value: &str, problems: &Problems) {
    if value.len() > 63 || !is_label_text(value) {
        problems.error(path, format!("'{value}' is not a valid label value"));
    }
}

/// Letters, digits, `-`, `_` and `.`, with a letter or digit at both ends; may be empty.
fn is_label_text(text: &str) -> bool {
    let bytes = text.as_bytes();
    let end_ok = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    end_ok(bytes.first())
        && end_ok(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

/// Lower-case DNS names with dots between them (RFC 1123, as Kubernetes checks it).
pub(super) fn is_dns_subdomain(text: &str) -> bool {
    !text.is_empty()
        && text.split('.').all(|label| {
            let bytes = label.as_bytes();
            let ok = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            bytes.first().is_some_and(ok)
                && bytes.last().is_some_and(ok)
                && bytes.iter().all(|byte| ok(byte) || *byte == b'-')
        })
}
