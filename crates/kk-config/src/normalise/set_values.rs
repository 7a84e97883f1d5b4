//! Parses single values of a chart in one line like helm's `--set` (helm's documentation, "The Format and Limitations of --set"):
//! `outer.inner=value,list[0].name=value,other={a,b}`.

use std::iter::Peekable;
use std::str::Chars;

use serde_json::{Map, Value};

/// Largest index of a list. helm's parser has a limit, too, but a larger one: a list is filled up to its largest index.
const LARGEST_INDEX: usize = 1000;

/// A value and its path.
pub(super) struct Pair {
    path: Vec<Step>,
    pub(super) value: Value,
}

enum Step {
    Key(String),
    Index(usize),
}

impl Pair {
    pub(super) fn has_index(&self) -> bool {
        self.path.iter().any(|step| matches!(step, Step::Index(_)))
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.path.iter().filter_map(|step| match step {
            Step::Key(key) => Some(key.as_str()),
            Step::Index(_) => None,
        })
    }

    /// Sets the value at its path; an existing value of another kind is replaced.
    pub(super) fn set(self, into: &mut Value) {
        let mut at = into;
        for step in self.path {
            at = match step {
                Step::Key(key) => {
                    if !at.is_object() {
                        *at = Value::Object(Map::new());
                    }
                    &mut at[key]
                }
                Step::Index(index) => {
                    if !at.is_array() {
                        *at = Value::Array(Vec::new());
                    }
                    if let Value::Array(items) = &mut *at
                        && items.len() <= index
                    {
                        items.resize(index + 1, Value::Null);
                    }
                    &mut at[index]
                }
            };
        }
        *at = self.value;
    }
}

/// Parses a line. Errors state the problem and show nothing of the line.
pub(super) fn parse(text: &str) -> Result<Vec<Pair>, &'static str> {
    let mut chars = text.chars().peekable();
    let mut pairs = Vec::new();
    while chars.peek().is_some() {
        let path = path(&mut chars)?;
        let value = if chars.peek() == Some(&'{') { list(&mut chars)? } else { scalar(&mut chars, &[',']) };
        // Skips the comma, or detects the end.
        if chars.next().is_some_and(|next| next != ',') {
            return Err("something follows a list");
        }
        pairs.push(Pair { path, value });
    }
    if pairs.is_empty() { Err("it is empty") } else { Ok(pairs) }
}

fn path(chars: &mut Peekable<Chars<'_>>) -> Result<Vec<Step>, &'static str> {
    let mut path = Vec::new();
    loop {
        let key = until(chars, &['=', '[', '.', ',']);
        if key.is_empty() {
            return Err("a key is missing");
        }
        path.push(Step::Key(key));
        let mut stop = chars.next();
        while stop == Some('[') {
            let digits: String = std::iter::from_fn(|| chars.next_if(char::is_ascii_digit)).collect();
            let index = digits.parse::<usize>().ok().filter(|index| *index <= LARGEST_INDEX);
            path.push(Step::Index(index.ok_or("an index is no number up to 1000")?));
            if chars.next() != Some(']') {
                return Err("a `]` is missing");
            }
            stop = chars.next();
        }
        match stop {
            Some('=') => return Ok(path),
            Some('.') => {}
            Some(',') | None => return Err("a key has no value"),
            Some(_) => return Err("something follows an index"),
        }
    }
}

fn list(chars: &mut Peekable<Chars<'_>>) -> Result<Value, &'static str> {
    chars.next();
    let mut items = Vec::new();
    loop {
        items.push(scalar(chars, &[',', '}']));
        match chars.next() {
            Some(',') => {}
            Some(_) => return Ok(Value::Array(items)),
            None => return Err("a `}` is missing"),
        }
    }
}

/// A value with the type that helm assigns: numbers with a leading 0 are texts.
fn scalar(chars: &mut Peekable<Chars<'_>>, stops: &[char]) -> Value {
    let text = until(chars, stops);
    match text.as_str() {
        "true" => return Value::Bool(true),
        "false" => return Value::Bool(false),
        "null" => return Value::Null,
        "0" => return Value::from(0),
        _ => {}
    }
    match text.parse::<i64>() {
        Ok(number) if !text.starts_with('0') => Value::from(number),
        _ => Value::String(text),
    }
}

/// The text before one of these characters. A `\` removes the special meaning of the next character.
fn until(chars: &mut Peekable<Chars<'_>>, stops: &[char]) -> String {
    let mut text = String::new();
    while let Some(c) = chars.next_if(|c| !stops.contains(c)) {
        text.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_become_what_helm_makes_of_them() {
        for (text, expected) in [
            ("a=b", json!({"a": "b"})),
            ("a.b.c=1,a.b.d=true", json!({"a": {"b": {"c": 1, "d": true}}})),
            (
                "a=null,b=,c=0,d=007,e=-3,f=1.5",
                json!({"a": null, "b": "", "c": 0, "d": "007", "e": -3, "f": "1.5"}),
            ),
            ("a={x,2,},b={}", json!({"a": ["x", 2, ""], "b": [""]})),
            ("a[1].b=x,a[0]=y", json!({"a": ["y", {"b": "x"}]})),
            ("a[0][1]=x", json!({"a": [[null, "x"]]})),
            ("a=x\\,y,b\\.c=1", json!({"a": "x,y", "b.c": 1})),
            ("a=b=c,d= e", json!({"a": "b=c", "d": " e"})),
            ("a=+5,b={x},c=1,", json!({"a": 5, "b": ["x"], "c": 1})),
        ] {
            let mut all = json!({});
            parse(text).unwrap().into_iter().for_each(|pair| pair.set(&mut all));
            assert_eq!(all, expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_value_is_refused_without_being_shown() {
        for text in [
            "",
            "SENTINEL",
            "a,b=c",
            "=SENTINEL",
            "a..b=1",
            "a[x]=1",
            "a[1=1",
            "a[99999]=1",
            "a[0]b=1",
            "a={x",
            "a={x}y",
        ] {
            assert!(!parse(text).err().unwrap().contains("SENTINEL"), "{text}");
        }
    }
}
