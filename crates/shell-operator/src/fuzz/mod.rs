//! Random texts for every reader of foreign input: `make fuzz`.
//!
//! A text is one of `tests/fixtures/fuzz/TARGET/`, changed at random positions; a property must hold for each text. `arbtest`
//! drives it on stable Rust: `ARBTEST_BUDGET_MS` is the time for each target, and a failure is repeated with `ARBTEST_SEED`,
//! which it prints. Add the failed text to the fixtures. In an ordinary test run each target has a tenth of a second.

mod contexts;
mod patches;
mod values;

use std::path::Path;

use arbtest::arbitrary::{Result, Unstructured};
use serde_json::Value;

/// Pieces that mean something to the one or other reader.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    ",",
    ":",
    "\n",
    "\n---\n",
    "  ",
    "- ",
    "&a ",
    "*a",
    "<<: ",
    "|\n",
    "!!str ",
    "'",
    "null",
    "true",
    "on",
    "0644",
    "-1",
    "1e999",
    "9223372036854775808",
    "\\u0000",
    "\\ud83d",
    "\u{2028}",
    "\u{feff}",
    "*/2",
    "L",
    "TZ=",
    "@every ",
    "?",
    "metadata",
    "name",
    "items",
    "resourceVersion",
    "\"object\":",
];

/// Texts to begin with.
pub(crate) struct Seeds(Vec<Vec<u8>>);

impl Seeds {
    /// The seeds of one target, and `others`.
    pub(crate) fn of(target: &str, others: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/fuzz").join(target);
        let mut files: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let texts = files.iter().map(|file| std::fs::read(file).unwrap());
        Self(texts.chain(others).collect())
    }

    /// One of them, changed at some places.
    pub(crate) fn changed(&self, u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
        let mut text = u.choose(&self.0)?.clone();
        for _ in 0..u.int_in_range(0..=6)? {
            let at = u.choose_index(text.len() + 1)?;
            let end = (at + u.int_in_range(0..=12)?).min(text.len());
            match u.int_in_range(0..=5)? {
                0 => drop(text.drain(at..end)),
                1 => insert(&mut text, at, u.choose(PIECES)?.as_bytes()),
                2 => {
                    let other = u.choose(&self.0)?;
                    let from = u.choose_index(other.len() + 1)?;
                    text.truncate(at);
                    text.extend_from_slice(&other[from..]);
                }
                3 => {
                    let again = text[at..end].repeat(u.int_in_range(1..=40)?);
                    insert(&mut text, at, &again);
                }
                4 if at < end => text[at] = u.arbitrary()?,
                _ => {
                    let piece: [u8; 3] = u.arbitrary()?;
                    insert(&mut text, at, &piece);
                }
            }
        }
        Ok(text)
    }

    /// The same as text.
    fn changed_text(&self, u: &mut Unstructured<'_>) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.changed(u)?).into_owned())
    }
}

fn insert(text: &mut Vec<u8>, at: usize, piece: &[u8]) {
    text.splice(at..at, piece.iter().copied());
}

/// Whether two values are the same. A number may be written in several ways: -0 and 0, or a large one as a float.
pub(crate) fn are_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| are_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| are_equal(a, b)))
        }
        _ => one == other,
    }
}

/// Runs `property` with random data until the time is over, and reports the number of runs.
pub(crate) fn fuzz(target: &str, mut property: impl FnMut(&mut Unstructured<'_>) -> Result<()>) {
    let mut runs = 0_u64;
    let counted = |u: &mut Unstructured<'_>| {
        runs += 1;
        property(u)
    };
    arbtest::arbtest(counted).size_min(512).size_max(4096).run();
    println!("fuzz {target}: {runs} runs without a failure");
}
