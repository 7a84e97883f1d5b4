//! The tree of a YAML text, and the possible meanings of its scalars.

use serde_json::Value as Json;

/// A range of the text: lines from 1, columns in characters from 1, end exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) end_line: usize,
    pub(crate) end_column: usize,
}

/// The beginning of a text.
pub(super) const FIRST: Span = Span { line: 1, column: 1, end_line: 1, end_column: 1 };

/// A value and its position.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) value: Value,
}

/// The content of a node. Scalars are resolved by callers that know the wanted type, so that `0123` can be a text.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Scalar { text: String, plain: bool },
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// A key of a map.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) span: Span,
    pub(crate) text: String,
}

impl Span {
    /// Whether the other span begins in this span.
    pub(crate) fn contains(self, other: Self) -> bool {
        let (start, begins) = ((self.line, self.column), (other.line, other.column));
        begins == start || (start..(self.end_line, self.end_column)).contains(&begins)
    }

    pub(super) fn end_at(&mut self, other: Span) {
        (self.end_line, self.end_column) = (other.end_line, other.end_column);
    }
}

impl Node {
    /// A value without a position, for configurations that are not from a file.
    pub(crate) fn nowhere() -> Self {
        Self { span: FIRST, value: Value::Map(Vec::new()) }
    }

    /// The entry of a map; `None` if this is not a map or has no such key.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|(_, node)| node)
    }

    /// The entry of a map with its key.
    pub(crate) fn entry(&self, key: &str) -> Option<&(Key, Node)> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|(known, _)| known.text == key),
            _ => None,
        }
    }

    /// The value at a path of keys.
    pub(crate) fn at(&self, path: &str) -> Option<&Node> {
        path.split('.').try_fold(self, Node::get)
    }

    /// As [`Node::get`], to change it.
    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        match &mut self.value {
            Value::Map(entries) => {
                entries.iter_mut().find(|(known, _)| known.text == key).map(|(_, node)| node)
            }
            _ => None,
        }
    }

    /// Removes an entry of a map.
    pub(crate) fn take(&mut self, key: &str) -> Option<(Key, Node)> {
        let Value::Map(entries) = &mut self.value else { return None };
        let index = entries.iter().position(|(known, _)| known.text == key)?;
        Some(entries.remove(index))
    }

    /// Adds an entry to a map; other values stay as they are.
    pub(crate) fn put(&mut self, key: Key, node: Node) {
        if let Value::Map(entries) = &mut self.value {
            entries.push((key, node));
        }
    }

    /// The text of a scalar.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The text of a scalar that is not quoted, and so may be a number, a truth value or nothing.
    fn plain(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar { text, plain: true } => Some(text),
            _ => None,
        }
    }

    /// Whether this is a scalar without quotes, in one line.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain().is_some_and(|text| !text.is_empty()) && self.span.line == self.span.end_line
    }

    pub(crate) fn is_null(&self) -> bool {
        self.plain().is_some_and(|text| matches!(text, "" | "~" | "null" | "Null" | "NULL"))
    }

    /// The truth value by YAML 1.1, which KubeKey reads.
    pub(crate) fn as_bool(&self) -> Option<bool> {
        match self.plain()? {
            "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
            "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
            _ => None,
        }
    }

    /// A whole decimal number without leading zeros.
    pub(crate) fn as_integer(&self) -> Option<i64> {
        let text = self.plain()?;
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        let decimal =
            digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
        decimal.then(|| text.parse().ok())?
    }

    fn as_float(&self) -> Option<f64> {
        let text = self.plain()?;
        let number = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
        let leading_zero = text.len() > 1 && text.starts_with('0') && !text.starts_with("0.");
        (number && !leading_zero).then(|| text.parse().ok())?
    }

    /// The value as JSON. Scalars are resolved by their appearance.
    pub(crate) fn to_json(&self) -> Json {
        match &self.value {
            Value::List(items) => items.iter().map(Node::to_json).collect(),
            Value::Map(entries) => {
                Json::Object(entries.iter().map(|(key, node)| (key.text.clone(), node.to_json())).collect())
            }
            Value::Scalar { .. } if self.is_null() => Json::Null,
            Value::Scalar { text, .. } => self
                .as_bool()
                .map(Json::from)
                .or_else(|| self.as_integer().map(Json::from))
                .or_else(|| self.as_float().map(Json::from))
                .unwrap_or_else(|| Json::from(text.as_str())),
        }
    }

    /// The number of values in this node, including the node.
    pub(super) fn size(&self) -> usize {
        match &self.value {
            Value::Scalar { .. } => 1,
            Value::List(items) => 1 + items.iter().map(Node::size).sum::<usize>(),
            Value::Map(entries) => 1 + entries.iter().map(|(_, node)| node.size()).sum::<usize>(),
        }
    }
}
