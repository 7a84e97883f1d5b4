//! Filters that hooks use give what jq gives.
//!
//! `fixtures/jq-corpus.json` holds filters and what jq 1.6 made of them. What differs on purpose is in `DIFFERENT`, and in
//! docs/shell-operator/compatibility.md.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use shell_operator::jq::Filter;
use shell_operator::json::{Numbers, to_vec};

#[derive(Deserialize)]
struct Corpus {
    input: Value,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    filter: String,
    results: Vec<Value>,
}

/// Filters that are errors here: two speak of the program's text or of a stream of inputs, which a hook has not; the last
/// writes a number that JSON has not.
const ERRORS: [&str; 3] = ["input_line_number", "$__loc__.line", "infinite | tostring"];
/// Filters whose results differ, with ours: keys are sorted in texts too, as by gojq, which the original uses.
const DIFFERENT: [(&str, &str); 3] = [
    (".data | tojson", r#"["{\"b\":\"2\",\"k\":\"val\"}"]"#),
    (".data | tostring", r#"["{\"b\":\"2\",\"k\":\"val\"}"]"#),
    (".data | @json", r#"["{\"b\":\"2\",\"k\":\"val\"}"]"#),
];

fn apply(filter: &str, input: &Value) -> Result<Vec<Value>, String> {
    let input =
        jaq_json::read::parse_single(input.to_string().as_bytes()).map_err(|error| error.to_string())?;
    let filter = Filter::compile(filter).map_err(|error| error.to_string())?;
    let results = filter.run(input).map_err(|error| error.to_string())?;
    let value = |result| {
        let text = to_vec(result, Numbers::Float).map_err(|error| error.to_string())?;
        serde_json::from_slice(&text).map_err(|error| error.to_string())
    };
    results.iter().map(value).collect()
}

/// Numbers are equal when their values are: `1` and `1.0`.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) => serde_json::json!(number.as_f64()),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(map) => {
            let sorted: BTreeMap<String, Value> = map.iter().map(|(k, v)| (k.clone(), plain(v))).collect();
            serde_json::to_value(sorted).unwrap()
        }
        other => other.clone(),
    }
}

#[test]
fn filters_give_what_jq_gives() {
    let corpus: Corpus = serde_json::from_str(include_str!("fixtures/jq-corpus.json")).unwrap();
    assert!(corpus.cases.len() >= 200);
    let mut problems = Vec::new();
    for Case { filter, results } in &corpus.cases {
        if ERRORS.contains(&filter.as_str()) {
            assert!(apply(filter, &corpus.input).is_err(), "{filter} works: take it from the list");
            continue;
        }
        let ours = apply(filter, &corpus.input);
        let expected = match DIFFERENT.iter().find(|(known, _)| known == filter) {
            Some((_, ours)) => serde_json::from_str(ours).unwrap(),
            None => results.clone(),
        };
        let same = ours.as_ref().is_ok_and(|ours| {
            ours.iter().map(plain).collect::<Vec<_>>() == expected.iter().map(plain).collect::<Vec<_>>()
        });
        if !same {
            problems.push(format!("{filter}\n    jq:   {}\n    ours: {ours:?}", Value::from(expected)));
        }
    }
    assert!(problems.is_empty(), "{} differ:\n{}", problems.len(), problems.join("\n"));
}
