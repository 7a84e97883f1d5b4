//! Reads YAML text into a tree in which every value has its position.
//!
//! The parser is that of `serde-saphyr`, used directly: a serde deserialiser stops at its first error and loses positions, but a
//! Cluster file must be checked as a whole. No other module uses the parser.

mod tree;

pub(crate) use tree::{Key, Node, Span, Value};

use granit_parser::{Event, Parser, ScalarStyle, ScanError, StrInput, Tag};
use std::borrow::Cow;
use std::collections::HashMap;
use tree::FIRST;

/// Maximum number of values in a file after its aliases are expanded: far above any real cluster, far below the possible size of
/// nested aliases.
const MAX_NODES: usize = 1_000_000;

/// One document of a file.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) root: Node,
}

/// Why a text is not usable YAML, and the position.
#[derive(Debug)]
pub(crate) struct YamlError {
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) hint: &'static str,
    /// The parser cannot continue after this position.
    pub(crate) is_syntax: bool,
}

fn error(span: Span, message: impl Into<String>, hint: &'static str) -> YamlError {
    YamlError { span, message: message.into(), hint, is_syntax: false }
}

/// The result of parsing a text: the documents, and errors that did not stop the parser (repeated keys).
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) documents: Vec<Document>,
    pub(crate) errors: Vec<YamlError>,
}

/// Reads all documents of a text. A syntax error ends the parsing; the documents before it are kept.
pub(crate) fn parse(text: &str) -> Parsed {
    // A byte order mark would become part of the first key.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut builder = Builder {
        parser: Parser::new_from_str(text),
        anchors: HashMap::new(),
        nodes: 0,
        parsed: Parsed::default(),
    };
    if let Err(fatal) = builder.documents() {
        builder.parsed.errors.push(fatal);
    }
    builder.parsed
}

struct Builder<'a> {
    parser: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    parsed: Parsed,
}

impl<'a> Builder<'a> {
    fn documents(&mut self) -> Result<(), YamlError> {
        while let Some((event, _)) = self.next()? {
            if !matches!(event, Event::DocumentStart(..)) {
                continue;
            }
            let root = self.node()?;
            self.parsed.documents.push(Document { root });
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<(Event<'a>, granit_parser::Span)>, YamlError> {
        loop {
            match self.parser.next_event() {
                Some(Ok((Event::Comment(..), _))) => {}
                Some(Ok(event)) => return Ok(Some(event)),
                Some(Err(error)) => return Err(syntax_error(&error)),
                None => return Ok(None),
            }
        }
    }

    fn node(&mut self) -> Result<Node, YamlError> {
        match self.next()? {
            Some((event, span)) => self.node_from(event, span),
            None => Err(error(FIRST, "the file ends too early", "")),
        }
    }

    fn node_from(&mut self, event: Event<'a>, at: granit_parser::Span) -> Result<Node, YamlError> {
        let mut span = convert(at);
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_unknown(tag.as_ref(), span);
                let plain = style == ScalarStyle::Plain && !is_string_tag(tag.as_ref());
                (Value::Scalar { text: text.into_owned(), plain }, anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.refuse_unknown(tag.as_ref(), span);
                (Value::List(self.list(&mut span)?), anchor)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.refuse_unknown(tag.as_ref(), span);
                (Value::Map(self.map(&mut span)?), anchor)
            }
            Event::Alias(anchor) => {
                let node = self.anchors.get(&anchor).cloned().ok_or_else(|| {
                    error(span, "this alias is used inside the value that it names", "write the value out")
                })?;
                self.count(node.size(), span)?;
                return Ok(node);
            }
            _ => return Err(error(span, "a value is expected here", "")),
        };
        self.count(1, span)?;
        let node = Node { span, value };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    /// Refuses unknown tags, because their value is not the written text: `password: !abc` is an empty text. The tag may be a
    /// part of a secret, so it is not shown.
    fn refuse_unknown(&mut self, tag: Option<&Cow<'_, Tag>>, span: Span) {
        if tag.is_some_and(|tag| !tag.is_yaml_core_schema()) {
            let message = "the text after `!` is a YAML tag, and kk supports no tags";
            let hint = "put a value that begins with `!` in quotes";
            self.parsed.errors.push(error(span, message, hint));
        }
    }

    fn count(&mut self, nodes: usize, span: Span) -> Result<(), YamlError> {
        self.nodes += nodes;
        if self.nodes > MAX_NODES {
            let message = format!("the file holds more than {MAX_NODES} values");
            return Err(error(span, message, "aliases within aliases multiply"));
        }
        Ok(())
    }

    fn list(&mut self, span: &mut Span) -> Result<Vec<Node>, YamlError> {
        let mut items = Vec::new();
        while let Some((event, at)) = self.next()? {
            if event == Event::SequenceEnd {
                span.end_at(convert(at));
                break;
            }
            items.push(self.node_from(event, at)?);
        }
        Ok(items)
    }

    fn map(&mut self, span: &mut Span) -> Result<Vec<(Key, Node)>, YamlError> {
        let mut entries: Vec<(Key, Node)> = Vec::new();
        // Line of each key. A map in a large file may have many keys.
        let mut lines: HashMap<String, usize> = HashMap::new();
        let mut merged = Vec::new();
        while let Some((event, at)) = self.next()? {
            if event == Event::MappingEnd {
                span.end_at(convert(at));
                break;
            }
            let key = self.node_from(event, at)?;
            let value = self.node()?;
            let Value::Scalar { text, plain } = key.value else {
                self.parsed.errors.push(error(key.span, "a key must be a plain text", ""));
                continue;
            };
            if plain && text == "<<" {
                merged.push(value);
            } else if let Some(first) = lines.get(&text) {
                let message = format!("`{text}` is given twice; it was first given in line {first}");
                self.parsed.errors.push(error(key.span, message, "keep one of them"));
            } else {
                lines.insert(text.clone(), key.span.line);
                entries.push((Key { span: key.span, text }, value));
            }
        }
        for node in merged {
            merge(&mut entries, &mut lines, node);
        }
        Ok(entries)
    }
}

/// Handles the YAML 1.1 merge key `<<`: existing entries take precedence.
fn merge(entries: &mut Vec<(Key, Node)>, lines: &mut HashMap<String, usize>, from: Node) {
    match from.value {
        Value::Map(more) => {
            for (key, node) in more {
                if lines.insert(key.text.clone(), key.span.line).is_none() {
                    entries.push((key, node));
                }
            }
        }
        Value::List(maps) => maps.into_iter().for_each(|map| merge(entries, lines, map)),
        Value::Scalar { .. } => {}
    }
}

fn is_string_tag(tag: Option<&Cow<'_, Tag>>) -> bool {
    tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str"))
}

fn convert(span: granit_parser::Span) -> Span {
    Span {
        line: span.start.line(),
        column: span.start.col() + 1,
        end_line: span.end.line(),
        end_column: span.end.col() + 1,
    }
}

fn syntax_error(found: &ScanError) -> YamlError {
    let (line, column) = (found.marker().line(), found.marker().col() + 1);
    let span = Span { line, column, end_line: line, end_column: column + 1 };
    let message = format!("the file is not valid YAML: {}", found.info());
    let hint = "check indentation, quotes and brackets here and in the lines before";
    YamlError { is_syntax: true, ..error(span, message, hint) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value as Json, json};
    use std::fmt::Write;

    fn one(text: &str) -> Json {
        let parsed = parse(text);
        assert!(parsed.errors.is_empty(), "{:?}", parsed.errors);
        parsed.documents[0].root.to_json()
    }

    #[test]
    fn resolves_plain_scalars_as_yaml_1_1_and_leaves_quoted_ones_alone() {
        let text = "[yes, off, ~, 10, -1, 1.5, 1e3, 0777, 1_000, v1.36.0, 10.0.0.1, \"yes\", '10', !!str 10]";
        let expected = json!([
            true, false, null, 10, -1, 1.5, 1000.0, "0777", "1_000", "v1.36.0", "10.0.0.1", "yes", "10", "10"
        ]);
        assert_eq!(one(text), expected);
    }

    #[test]
    fn merges_and_repeats_anchored_values() {
        let text = "a: &base {user: root, port: 22}\nb: {<<: *base, port: 23}\nc: *base\n";
        let expected = json!({
            "a": {"user": "root", "port": 22}, "b": {"port": 23, "user": "root"}, "c": {"user": "root", "port": 22}
        });
        assert_eq!(one(text), expected);
    }

    #[test]
    fn places_count_characters_from_one() {
        let parsed = parse("\u{feff}ключ: значение\nb: [x]\n");
        let root = &parsed.documents[0].root;
        assert_eq!(root.get("ключ").unwrap().span, Span { line: 1, column: 7, end_line: 1, end_column: 15 });
        assert_eq!(root.get("b").unwrap().span, Span { line: 2, column: 4, end_line: 2, end_column: 7 });
    }

    #[test]
    fn reports_every_repeated_key_and_goes_on() {
        let parsed = parse("a: 1\na: 2\nb: {c: 1, c: 2}\n");
        let messages: Vec<&str> = parsed.errors.iter().map(|error| error.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "`a` is given twice; it was first given in line 1",
                "`c` is given twice; it was first given in line 3"
            ]
        );
    }

    #[test]
    fn an_alias_bomb_is_refused() {
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for i in 1..9 {
            let aliases = vec![format!("*a{}", i - 1); 10].join(", ");
            writeln!(text, "a{i}: &a{i} [{aliases}]").unwrap();
        }
        assert_eq!(parse(&text).errors[0].message, "the file holds more than 1000000 values");
    }

    #[test]
    fn strange_input_is_an_error_and_no_crash() {
        for text in [
            "a: [",
            "a: *b",
            "a: &a [*a]",
            "a:\n\tb: 1",
            "a: b: c",
            "{a: {b: \"c",
            "? [x]\n: y",
            &"[".repeat(5000),
        ] {
            assert!(!parse(text).errors.is_empty(), "{text}");
        }
        for text in ["", "---", "# nothing", "...", "x"] {
            assert!(parse(text).errors.is_empty(), "{text}");
        }
    }
}
