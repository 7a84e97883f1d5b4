//! Parses YAML like helm and kubectl, which accept more than the specification allows.

use serde_json::Value;
use shell_operator::yaml::{self, Dialect, Node};

/// Message of the parser for a quoted text whose continuation line is not indented further than its key.
const NOT_INDENTED: &str = "invalid indentation in multiline quoted scalar";
/// Message of the parser for `\'` in double quotes, which means a single quote.
const ESCAPE: &str = "found unknown escape character";

/// All documents of a text. Generators of definitions wrote quoted texts whose continuation lines are not indented enough.
/// Leading spaces of such a line have no meaning, so spaces are added.
pub(super) fn documents(text: &str) -> Result<Vec<Value>, String> {
    let nodes = match yaml::documents(text, Dialect::Text) {
        Err(why) if is_known(&why) => {
            // Each document is corrected separately, because the parser reports one line at a time and starts again from the
            // beginning.
            let all: Result<Vec<_>, _> = split(text).into_iter().map(mended).collect();
            all?.into_iter().flatten().collect()
        }
        other => other?,
    };
    nodes.iter().map(|node| node.to_json(Dialect::Text)).collect()
}

/// The first document of a text.
pub(super) fn value(text: &str) -> Result<Value, String> {
    Ok(documents(text)?.into_iter().next().unwrap_or_default())
}

fn is_known(why: &str) -> bool {
    [NOT_INDENTED, ESCAPE].iter().any(|known| why.contains(known))
}

fn mended(mut lines: Vec<String>) -> Result<Vec<Node>, String> {
    // Each iteration corrects one problem, and a line has at most as many problems as letters.
    for _ in 0..=lines.iter().map(String::len).sum() {
        match yaml::documents(&lines.concat(), Dialect::Text) {
            Err(why) if is_known(&why) => {
                let Some(line) = line_of(&why).and_then(|line| lines.get_mut(line)) else { return Err(why) };
                if why.contains(NOT_INDENTED) {
                    line.insert(0, ' ');
                } else if line.contains(r"\'") {
                    *line = line.replacen(r"\'", "'", 1);
                } else {
                    return Err(why);
                }
            }
            other => return other,
        }
    }
    Err(NOT_INDENTED.to_owned())
}

/// The index of the line in a message of the parser.
fn line_of(why: &str) -> Option<usize> {
    let number = why.split("line ").nth(1)?.split(|c: char| !c.is_ascii_digit()).next()?;
    number.parse::<usize>().ok()?.checked_sub(1)
}

/// The lines of each document.
fn split(text: &str) -> Vec<Vec<String>> {
    let mut documents = vec![Vec::new()];
    for line in text.split_inclusive('\n') {
        let is_start = line
            .strip_prefix("---")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
        if is_start {
            documents.push(Vec::new());
        }
        documents.last_mut().into_iter().for_each(|lines| lines.push(line.to_owned()));
    }
    documents
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_in_quotes_may_go_on_where_their_key_begins() {
        let text = "\
a:
  b: 'one
  two ''three'': four
  five'
  c: |
    d: 'six
    seven
---
e: \"eight
nine\"
";
        let expected = [
            json!({"a": {"b": "one two 'three': four five", "c": "d: 'six\nseven\n"}}),
            json!({"e": "eight nine"}),
        ];
        assert_eq!(documents(text).unwrap(), expected);
    }

    #[test]
    fn a_quote_may_be_escaped_in_double_quotes() {
        let text = "a: 'b\\'\n---\nc: \"it\\'s \\\"one\\\" user\\'s\"\n";
        assert_eq!(documents(text).unwrap(), [json!({"a": "b\\"}), json!({"c": "it's \"one\" user's"})]);
    }

    #[test]
    fn what_is_wrong_otherwise_stays_wrong() {
        for text in ["a: \"b\\qc\"\n", "a: 'one\n", "a: 'one\nb: two'\nc: [\n", "a: b: c\n"] {
            assert!(documents(text).is_err(), "{text}");
        }
    }
}
