//! Filters that hooks use have the results of gojq, which the original uses, and of jq.
//!
//! `fixtures/jq-corpus.json` contains filters and their results in Debian's jq 1.6 and gojq 0.12.20, as recorded by
//! `fixtures/jq/record.go`. Where the two differ, gojq counts, unless it does not know the filter at all. Intended differences
//! are in `DIFFERENT`, and in docs/shell-operator/compatibility.md.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde::Deserialize;
use serde_json::Value;
use shell_operator::jq::Filter;
use shell_operator::json::{self, Numbers};

#[derive(Deserialize)]
struct Corpus {
    input: Value,
    cases: Vec<Case>,
}

/// Results are a list, or the text `error`.
#[derive(Deserialize)]
struct Case {
    filter: String,
    /// Of both programs.
    results: Option<Value>,
    jq: Option<Value>,
    gojq: Option<Value>,
}

/// Filters that differ from what is recorded, with ours.
const DIFFERENT: [(&str, &str); 12] = [
    // There is one input, and neither files nor lines.
    ("input_line_number", r#""error""#),
    ("input_filename", r#""error""#),
    ("[inputs]", r#""error""#),
    // Objects that a filter makes keep their order, as in jq.
    (r#"{"b":1,"a":2} | [.[]]"#, "[[1,2]]"),
    // As in jq.
    (r#""x" * 0"#, "[null]"),
    // As in gojq, which jq became in 1.7.
    ("error(null)", r#""error""#),
    // A number is no key of an object, but not an error.
    (".[0]?", "[null]"),
    (".data[0]?", "[null]"),
    (r#"try .data[0] catch "no""#, "[null]"),
    // Not supported.
    ("[.[] as [$a] ?// $a | $a] | length", r#""error""#),
    (r#""foobar" | test("foo(?=bar)")"#, r#""error""#),
    (r#""Ünï" | test("^\\p{L}+$")"#, r#""error""#),
];

fn apply(filter: &str, input: &[u8]) -> Result<Value, String> {
    let input = json::parse(input).map_err(|error| error.to_string())?;
    let filter = Filter::compile(filter).map_err(|error| error.to_string())?;
    let results = filter.run(input).map_err(|error| error.to_string())?;
    let value = |result| {
        let text = json::to_vec(result, Numbers::Float).map_err(|error| error.to_string())?;
        serde_json::from_slice::<Value>(&text).map_err(|error| error.to_string())
    };
    results.iter().map(value).collect()
}

/// Numbers are equal when their values are: `1` and `1.0`.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) => serde_json::json!(number.as_f64()),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), plain(value))).collect(),
        other => other.clone(),
    }
}

impl Case {
    fn expected(&self) -> Value {
        if let Some((_, ours)) = DIFFERENT.iter().find(|(known, _)| *known == self.filter) {
            return serde_json::from_str(ours).unwrap();
        }
        let recorded = [&self.results, &self.gojq, &self.jq].into_iter().flatten();
        recorded.clone().find(|results| results.is_array()).or(recorded.last()).unwrap().clone()
    }
}

#[test]
fn filters_give_what_gojq_and_jq_give() {
    let corpus: Corpus = serde_json::from_str(include_str!("../fixtures/jq-corpus.json")).unwrap();
    assert!(corpus.cases.len() >= 500);
    let input = corpus.input.to_string();
    let mut problems = Vec::new();
    for case in &corpus.cases {
        let (ours, expected) = (apply(&case.filter, input.as_bytes()), case.expected());
        let same = match &ours {
            Ok(results) => plain(results) == plain(&expected),
            Err(_) => expected == "error",
        };
        if !same {
            problems.push(format!("{}\n    expected: {expected}\n    ours:     {ours:?}", case.filter));
        }
    }
    assert!(problems.is_empty(), "{} differ:\n{}", problems.len(), problems.join("\n"));
}
