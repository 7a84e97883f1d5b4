//! YAML as the original's two Go libraries read it, as JSON values.
//!
//! A document that is read as a structure and a document that is read from a text differ in the plain words that are booleans, in
//! the allowed keys and in the meaning of a repeated key: [`Dialect`]. The parser of `serde-saphyr` is used directly, because a
//! serde deserialiser knows one set of rules for plain words only. The module has no state.

mod scalar;

use std::borrow::Cow;
use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, Span, StrInput, Tag};
use serde_json::{Map, Value};

use scalar::resolve;

/// Values that a text may hold after its aliases are expanded: nested aliases multiply.
const MAX_NODES: usize = 1_000_000;
/// Levels of lists and maps, as many as `serde_json` reads.
const MAX_DEPTH: usize = 127;

/// The rules by which plain words become values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Go's `yaml.v3`: `yes` and `on` are words, keys are strings, a repeated key is an error.
    Structured,
    /// Go's `sigs.k8s.io/yaml`, which kubectl uses too: `yes` and `on` are booleans, the last of repeated keys counts.
    Text,
}

/// A value whose plain words have not been read yet.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A word or a text.
    Scalar(Scalar),
    /// A list.
    List(Vec<Node>),
    /// A map: keys in the order of the text, all different.
    Map(Vec<(Scalar, Node)>),
}

/// A word or a text, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// The text as it is written, without quotes.
    pub text: String,
    kind: Kind,
}

/// The property that decides the type of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    Text,
    Binary,
}

/// Reads all documents of `text`; an empty one is `null`.
pub fn documents(text: &str, dialect: Dialect) -> Result<Vec<Node>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let parser = Parser::new_from_str(text);
    let mut reader = Reader { parser, dialect, anchors: HashMap::new(), nodes: 0, depth: 0 };
    let mut documents = Vec::new();
    while let Some((event, _)) = reader.event()? {
        if let Event::DocumentStart(..) = event {
            reader.anchors.clear();
            documents.push(reader.node()?);
        }
    }
    Ok(documents)
}

/// The first document of `text` as JSON.
pub fn value(text: &str, dialect: Dialect) -> Result<Value, String> {
    documents(text, dialect)?.first().map_or(Ok(Value::Null), |document| document.to_json(dialect))
}

impl Node {
    /// The value as JSON.
    pub fn to_json(&self, dialect: Dialect) -> Result<Value, String> {
        Ok(match self {
            Self::Scalar(scalar) => scalar.to_json(dialect)?,
            Self::List(items) => {
                Value::Array(items.iter().map(|item| item.to_json(dialect)).collect::<Result<_, _>>()?)
            }
            Self::Map(entries) => {
                let mut map = Map::new();
                for (key, value) in entries {
                    map.insert(key.to_key(dialect)?, value.to_json(dialect)?);
                }
                Value::Object(map)
            }
        })
    }

    /// Number of values in it, itself included.
    fn size(&self) -> usize {
        match self {
            Self::Scalar(_) => 1,
            Self::List(items) => 1 + items.iter().map(Self::size).sum::<usize>(),
            Self::Map(entries) => 1 + entries.iter().map(|(_, value)| 1 + value.size()).sum::<usize>(),
        }
    }

    /// Levels of lists and maps in it.
    fn depth(&self) -> usize {
        match self {
            Self::Scalar(_) => 0,
            Self::List(items) => 1 + items.iter().map(Self::depth).max().unwrap_or(0),
            Self::Map(entries) => 1 + entries.iter().map(|(_, value)| value.depth()).max().unwrap_or(0),
        }
    }
}

impl Scalar {
    /// The value as JSON.
    pub fn to_json(&self, dialect: Dialect) -> Result<Value, String> {
        resolve(self, dialect)
    }

    /// The text of a key of a JSON object.
    fn to_key(&self, dialect: Dialect) -> Result<String, String> {
        match (resolve(self, dialect)?, dialect) {
            (Value::String(text), _) => Ok(text),
            (Value::Number(number), Dialect::Text) => Ok(number.to_string()),
            (Value::Bool(flag), Dialect::Text) => Ok(flag.to_string()),
            _ => Err(format!("the key {} must be a string: put it in quotes", self.text)),
        }
    }
}

struct Reader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    dialect: Dialect,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn event(&mut self) -> Result<Option<(Event<'a>, Span)>, String> {
        loop {
            match self.parser.next_event() {
                Some(Ok((Event::Comment(..), _))) => {}
                Some(Ok(event)) => return Ok(Some(event)),
                Some(Err(error)) => return Err(at(error.marker().line(), error.info())),
                None => return Ok(None),
            }
        }
    }

    fn node(&mut self) -> Result<Node, String> {
        let (event, span) = self.event()?.ok_or("the text ends too early")?;
        self.node_from(event, span)
    }

    fn node_from(&mut self, event: Event<'a>, span: Span) -> Result<Node, String> {
        let line = span.start.line();
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let kind = kind_of(style, tag.as_ref());
                (Node::Scalar(Scalar { text: text.into_owned(), kind }), anchor)
            }
            Event::SequenceStart(_, anchor, _) => (self.nested(line, Self::list)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.nested(line, Self::map)?, anchor),
            Event::Alias(anchor) => {
                let node = self.anchors.get(&anchor).cloned();
                let node = node.ok_or_else(|| at(line, "an alias is used inside the value that it names"))?;
                if self.depth + node.depth() > MAX_DEPTH {
                    return Err(too_deep(line));
                }
                self.count(node.size(), line)?;
                return Ok(node);
            }
            _ => return Err(at(line, "a value is expected")),
        };
        self.count(1, line)?;
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn nested(
        &mut self,
        line: usize,
        read: fn(&mut Self, usize) -> Result<Node, String>,
    ) -> Result<Node, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(too_deep(line));
        }
        let node = read(self, line)?;
        self.depth -= 1;
        Ok(node)
    }

    fn list(&mut self, _: usize) -> Result<Node, String> {
        let mut items = Vec::new();
        while let Some((event, span)) = self.event()? {
            if event == Event::SequenceEnd {
                return Ok(Node::List(items));
            }
            items.push(self.node_from(event, span)?);
        }
        Err("the text ends inside a list".to_owned())
    }

    fn map(&mut self, _: usize) -> Result<Node, String> {
        let mut entries = Entries::default();
        let mut merged = Vec::new();
        while let Some((event, span)) = self.event()? {
            if event == Event::MappingEnd {
                for node in merged {
                    entries.merge(node)?;
                }
                return Ok(Node::Map(entries.list));
            }
            let line = span.start.line();
            let Node::Scalar(key) = self.node_from(event, span)? else {
                return Err(at(line, "a key must be a text"));
            };
            let value = self.node()?;
            if key.kind == Kind::Plain && key.text == "<<" {
                merged.push(value);
            } else if let Err(key) = entries.put(key, value, self.dialect == Dialect::Text) {
                return Err(at(line, format!("the key {key} is given twice")));
            }
        }
        Err("the text ends inside a map".to_owned())
    }

    fn count(&mut self, nodes: usize, line: usize) -> Result<(), String> {
        self.nodes += nodes;
        if self.nodes > MAX_NODES {
            return Err(at(line, format!("more than {MAX_NODES} values: aliases within aliases multiply")));
        }
        Ok(())
    }
}

/// The entries of a map, and where each key is: a map may be long.
#[derive(Default)]
struct Entries {
    list: Vec<(Scalar, Node)>,
    positions: HashMap<String, usize>,
}

impl Entries {
    /// Adds an entry. A key that is there gets the new value, or is returned as an error.
    fn put(&mut self, key: Scalar, value: Node, replace: bool) -> Result<(), String> {
        match self.positions.get(&key.text) {
            None => {
                self.positions.insert(key.text.clone(), self.list.len());
                self.list.push((key, value));
            }
            Some(position) if replace => self.list[*position].1 = value,
            Some(_) => return Err(key.text),
        }
        Ok(())
    }

    /// The merge key `<<`: what is there already counts.
    fn merge(&mut self, from: Node) -> Result<(), String> {
        match from {
            Node::Map(entries) => {
                for (key, value) in entries {
                    // The error reports that the key exists already, which is the wanted result.
                    let _ = self.put(key, value, false);
                }
                Ok(())
            }
            Node::List(maps) => maps.into_iter().try_for_each(|map| self.merge(map)),
            Node::Scalar(_) => Err("what << names must be a map".to_owned()),
        }
    }
}

fn kind_of(style: ScalarStyle, tag: Option<&Cow<'_, Tag>>) -> Kind {
    let is = |name: &str| tag.is_some_and(|tag| tag.is_yaml_core_schema_tag(name));
    let typed = ["int", "float", "bool", "null"].into_iter().any(is);
    // `binary` is a YAML tag, but not one of the core schema.
    let is_binary = tag.is_some_and(|tag| tag.handle() == "tag:yaml.org,2002:" && tag.suffix() == "binary");
    if is_binary {
        Kind::Binary
    } else if typed || (style == ScalarStyle::Plain && tag.is_none()) {
        Kind::Plain
    } else {
        Kind::Text
    }
}

fn at(line: usize, what: impl std::fmt::Display) -> String {
    format!("line {line}: {what}")
}

fn too_deep(line: usize) -> String {
    at(line, format!("more than {MAX_DEPTH} levels of lists and maps"))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;
    use serde::Deserialize;

    /// The results of the Go libraries for one text.
    #[derive(Deserialize)]
    struct Recorded {
        yaml: String,
        structured: Value,
        text: Value,
        /// The result of both dialects here, if it differs.
        here: Option<Value>,
    }

    /// Numbers as floating point: Go prints `-0` and 21 digits where this prints `0` and an exponent.
    fn comparable(value: &Value) -> Value {
        match value {
            Value::Number(number) => (number.as_f64().unwrap() + 0.0).into(),
            Value::Array(items) => items.iter().map(comparable).collect(),
            Value::Object(map) => {
                map.iter().map(|(key, value)| (key.clone(), comparable(value))).collect::<Map<_, _>>().into()
            }
            other => other.clone(),
        }
    }

    #[test]
    fn texts_are_read_as_the_go_libraries_read_them() {
        let recorded: Vec<Recorded> =
            serde_json::from_str(include_str!("../../tests/fixtures/yaml/recorded.json")).unwrap();
        assert!(recorded.len() > 150);
        let error = serde_json::json!({ "error": true });
        let mut wrong = Vec::new();
        for case in &recorded {
            let (structured, text) = (&case.structured, &case.text);
            for (dialect, there) in [(Dialect::Structured, structured), (Dialect::Text, text)] {
                let expected = comparable(case.here.as_ref().unwrap_or(there));
                let got = value(&case.yaml, dialect);
                if comparable(got.as_ref().unwrap_or(&error)) != expected {
                    wrong.push(format!("{dialect:?} {:?}: {got:?} instead of {expected}", case.yaml));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn whole_numbers_keep_their_digits() {
        let text = "[12345678901234567, 18446744073709551615, 1e3, 1.0]";
        let value = value(text, Dialect::Text).unwrap();
        assert_eq!(value.to_string(), "[12345678901234567,18446744073709551615,1000,1]");
    }

    #[test]
    fn texts_that_would_exhaust_memory_or_stack_are_refused() {
        let levels = |count: usize| format!("{}{}", "[".repeat(count), "]".repeat(count));
        assert!(documents(&levels(MAX_DEPTH), Dialect::Text).is_ok());
        assert!(documents(&levels(MAX_DEPTH + 1), Dialect::Text).unwrap_err().contains("levels"));
        assert!(documents(&"[".repeat(100_000), Dialect::Text).is_err());
        let mut aliases = "a: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..20 {
            let alias = format!("*a{}", level - 1);
            let ten = [alias.as_str(); 10].join(", ");
            writeln!(aliases, "b{level}: &a{level} [{ten}]").unwrap();
        }
        assert!(documents(&aliases, Dialect::Structured).unwrap_err().contains("aliases"));
    }

    #[test]
    fn documents_are_separate_and_empty_ones_are_null() {
        let read = |text| {
            let documents = documents(text, Dialect::Structured).unwrap();
            documents.iter().map(|node| node.to_json(Dialect::Structured).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(
            read("a: 1\n---\n---\n{b: on}\n"),
            [serde_json::json!({ "a": 1 }), Value::Null, serde_json::json!({ "b": "on" })]
        );
        assert!(read("").is_empty());
    }
}
