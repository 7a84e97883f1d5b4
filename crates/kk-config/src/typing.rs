//! Detects typing mistakes that YAML reads as something else: characters that look like others, and missing blanks.

use crate::findings::Findings;
use crate::look_alike::{LookAlike, look_alikes};
use crate::mask::names_secret;
use crate::yaml::{Node, Span, Value, YamlError};
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// Lines before a syntax error in which its cause is searched: YAML notices a missing colon only when the next key follows.
const LINES_BEFORE: usize = 5;

/// All keys of a schema.
pub(crate) fn keys(schema: &Json) -> BTreeSet<&str> {
    let mut keys = BTreeSet::new();
    collect_keys(schema, &mut keys);
    keys
}

fn collect_keys<'a>(schema: &'a Json, keys: &mut BTreeSet<&'a str>) {
    match schema {
        Json::Object(fields) => {
            for (name, inner) in fields {
                if name == "properties" {
                    keys.extend(inner.as_object().into_iter().flat_map(|all| all.keys().map(String::as_str)));
                }
                collect_keys(inner, keys);
            }
        }
        Json::Array(items) => items.iter().for_each(|inner| collect_keys(inner, keys)),
        _ => {}
    }
}

/// A mistake, and its position in a line: characters from 0.
struct Mistake {
    start: usize,
    end: usize,
    message: String,
    hint: String,
}

/// Reports why a text is not YAML: by a typing mistake near the position, or with the parser's message.
pub(crate) fn report(error: &YamlError, keys: &BTreeSet<&str>, out: &mut Findings<'_>) {
    if !error.is_syntax {
        return out.structure_error(error.span, error.message.as_str(), error.hint);
    }
    let mut found = None;
    let lines = (1..=error.span.line).rev().filter(|number| !is_blank(out.line(*number)));
    for number in lines.take(LINES_BEFORE) {
        match mistake(out.line(number), number == error.span.line, keys) {
            Some(mistake) => found = Some((number, mistake)),
            // Of several consecutive lines with the same mistake, the first is reported.
            None if found.is_some() => break,
            None => {}
        }
    }
    if let Some((line, mistake)) = found {
        let span = Span { line, column: mistake.start + 1, end_line: line, end_column: mistake.end + 1 };
        return out.typing_error(span, mistake.message, mistake.hint);
    }
    let line = out.line(error.span.line);
    let has_secret = line.split(|c: char| !c.is_alphanumeric()).any(names_secret);
    let hint = if has_secret {
        "put secrets into quotes: many characters have a meaning in YAML"
    } else {
        error.hint
    };
    out.structure_error(error.span, error.message.as_str(), hint);
}

fn is_blank(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

/// The mistake in a line. `has_error`: YAML reports an error in this line, not in a later one.
fn mistake(line: &str, has_error: bool, keys: &BTreeSet<&str>) -> Option<Mistake> {
    let syntax = syntax_of(line);
    if let Some(found) = look_alikes(&syntax).find(|found| has_error || fails_later(found, &syntax)) {
        let hint = "type it again: the text was probably copied from a web page or a document".to_owned();
        let message = format!("this is {}", found.what);
        return Some(Mistake { start: found.place, end: found.place + 1, message, hint });
    }
    missing_blank(&syntax, keys)
}

/// Whether a character can cause an error in a later line. In the text of a value it cannot: punctuation of Chinese text is
/// full-width.
fn fails_later(found: &LookAlike, syntax: &str) -> bool {
    let before: String = syntax.chars().take(found.place).collect();
    let in_indent = before.chars().all(|c| c == ' ' || c == '-');
    match found.meant {
        None => true,
        Some(':') => !before.contains(": "),
        Some('-') => in_indent,
        Some('"' | '\'') => in_indent || before.trim_end().ends_with(':'),
        Some(']') => before.contains('['),
        Some('}') => before.contains('{'),
        Some(_) => false,
    }
}

/// A line with its quoted text and its comment replaced by blanks.
fn syntax_of(line: &str) -> String {
    let (mut quote, mut before) = (None, ' ');
    let mut syntax = String::new();
    for c in line.chars() {
        let shown = match quote {
            Some('#') => ' ',
            Some(open) => {
                if c == open {
                    quote = None;
                }
                '.'
            }
            None if c == '#' && before.is_whitespace() => {
                quote = Some('#');
                ' '
            }
            None if matches!(c, '"' | '\'') && (before.is_whitespace() || "[{,:-".contains(before)) => {
                quote = Some(c);
                '.'
            }
            None => c,
        };
        syntax.push(shown);
        before = c;
    }
    syntax
}

/// Detects `key:value` and `-item`.
fn missing_blank(syntax: &str, keys: &BTreeSet<&str>) -> Option<Mistake> {
    let chars: Vec<char> = syntax.chars().collect();
    let indent = chars.iter().take_while(|c| c.is_whitespace()).count();
    let hint = "write `- item` and `key: value`, with a blank between".to_owned();
    if chars.get(indent) == Some(&'-')
        && chars.get(indent + 1).is_some_and(|c| !c.is_whitespace() && *c != '-')
    {
        let message = "a blank is missing after `-`".to_owned();
        return Some(Mistake { start: indent, end: indent + 1, message, hint });
    }
    let is_word = |c: char| c.is_ascii_alphanumeric();
    let (start, end) = chars.iter().enumerate().find_map(|(end, c)| {
        let value = chars.get(end + 1)?;
        if *c != ':' || value.is_whitespace() || *value == '/' {
            return None;
        }
        let length = chars[..end].iter().rev().take_while(|c| is_word(**c)).count();
        let word: String = chars[end - length..end].iter().collect();
        let begins = end == length || matches!(chars[end - length - 1], ' ' | '{' | ',' | '-');
        (begins && keys.contains(word.as_str())).then_some((end - length, end))
    })?;
    let word: String = chars[start..end].iter().collect();
    let message = format!("a blank is missing after `{word}:`");
    Some(Mistake { start, end: end + 1, message, hint })
}

/// The key before the colon of `key:value`, if it is a known key.
pub(crate) fn key_without_blank(text: &str, is_known: impl Fn(&str) -> bool) -> Option<&str> {
    let (key, value) = text.split_once(':')?;
    (!value.is_empty() && is_known(key)).then_some(key)
}

/// Reports plain values that YAML accepts but that are typing mistakes.
pub(crate) fn check(node: &Node, keys: &BTreeSet<&str>, out: &mut Findings<'_>) {
    match &node.value {
        Value::List(items) => items.iter().for_each(|item| check(item, keys, out)),
        Value::Map(entries) => {
            for (key, value) in entries {
                check_text(&key.text, key.span, keys, out);
                check(value, keys, out);
            }
        }
        Value::Scalar { text, plain: true } => check_text(text, node.span, keys, out),
        Value::Scalar { .. } => {}
    }
}

fn check_text(text: &str, span: Span, keys: &BTreeSet<&str>, out: &mut Findings<'_>) {
    // A plain value that continues in the next line has usually swallowed a key or an item.
    for number in span.line + 1..=span.end_line {
        let syntax = syntax_of(out.line(number));
        if let Some(Mistake { start, end, message, hint }) = missing_blank(&syntax, keys) {
            let at = Span { line: number, column: start + 1, end_line: number, end_column: end + 1 };
            out.typing_error(at, message, hint);
            return out.covered(span);
        }
    }
    let misleads = |found: &LookAlike| {
        found.meant.is_none() || found.place == 0 && (found.is_quote() || found.meant == Some('-'))
    };
    if let Some(LookAlike { what, .. }) = look_alikes(text).find(misleads) {
        let hint = "type it again: the text was probably copied from a web page or a document";
        out.typing_error(span, format!("there is {what} in this text"), hint);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_line_before_an_error_only_what_fails_later_is_a_mistake() {
        for (line, before, here) in [
            ("spec：", Some(4), Some(4)),
            ("- name：alder", Some(6), Some(6)),
            ("　etcd: [alder]", Some(0), Some(0)),
            ("– alder", Some(0), Some(0)),
            ("- – alder", Some(2), Some(2)),
            ("name: “alder", Some(6), Some(6)),
            ("worker: [birch，cedar］", Some(20), Some(14)),
            ("- {name: birch, arch: amd64｝", Some(27), Some(27)),
            ("note: 第一，第二。", None, Some(8)),
            ("note: 注意：第一", None, Some(8)),
            ("note: 1–3, “one”, （two］", None, Some(7)),
            ("note: \"“one”：\" # “one”：", None, None),
        ] {
            for (has_error, place) in [(false, before), (true, here)] {
                let found = mistake(line, has_error, &BTreeSet::new()).map(|found| found.start);
                assert_eq!(found, place, "{line} {has_error}");
            }
        }
    }

    #[test]
    fn a_missing_blank_is_found_outside_of_quotes_and_comments() {
        let keys = BTreeSet::from(["name", "port", "password"]);
        for (line, said) in [
            ("  -n1", Some("`-`")),
            ("  - {name: a, port:22}", Some("`port:`")),
            ("name:a", Some("`name:`")),
            ("  - password:x", Some("`password:`")),
            ("- a", None),
            ("---", None),
            ("name: \"port:22\"", None),
            ("name: a # port:22", None),
            ("image: nginx:1.25", None),
            ("name://x", None),
        ] {
            let found = missing_blank(&syntax_of(line), &keys).map(|found| found.message);
            assert_eq!(found, said.map(|word| format!("a blank is missing after {word}")), "{line}");
        }
    }
}
