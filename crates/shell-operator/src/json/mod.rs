//! JSON exactly as hooks know it: keys sorted, no spaces, HTML characters escaped, numbers in Go's form.
//!
//! Hooks compare and hash their input, so the text has to be byte for byte the text that flant/shell-operator writes.
//! [`write_value`] is the only writer of values that reach a hook, and `parse` the only reader of what filters get.

mod number;
mod parse;
mod text;

use jaq_json::{Num, Val};
pub use number::write_f64;
pub use parse::{MAX_DEPTH, ParseError, parse};
use text::Escapes;

/// How whole numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// Digits as they stand: for objects of the cluster, whose integers have 64 bits.
    Exact,
    /// As a 64-bit float: for results of a `jqFilter`, which the original sends through a float.
    Float,
}

/// Why a value has no JSON form.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WriteError {
    /// jaq allows any value as a key, JSON only strings.
    #[error("an object key must be a string, but one is {0}")]
    Key(String),
}

/// Appends `value` to `out` in the form described above. Values that JSON lacks are written as in jq: `nan` as `null`, infinity
/// as the largest float.
pub fn write_value(out: &mut Vec<u8>, value: &Val, numbers: Numbers) -> Result<(), WriteError> {
    write(out, value, Style { numbers, escapes: Escapes::Html })
}

/// Text of `value` as `tojson` of jq gives it: integers as they stand, and HTML characters too.
pub fn jq_text(value: &Val) -> Result<String, WriteError> {
    let mut out = Vec::new();
    write(&mut out, value, Style { numbers: Numbers::Exact, escapes: Escapes::Jq })?;
    Ok(String::from_utf8(out).expect("what is not UTF-8 was replaced"))
}

/// Appends `bytes` as a JSON string in the form described above; what is not UTF-8 becomes U+FFFD.
pub fn write_string(out: &mut Vec<u8>, bytes: &[u8]) {
    text::write_string(out, bytes, Escapes::Html);
}

#[derive(Clone, Copy)]
struct Style {
    numbers: Numbers,
    escapes: Escapes,
}

fn write(out: &mut Vec<u8>, value: &Val, style: Style) -> Result<(), WriteError> {
    match value {
        Val::Null => out.extend_from_slice(b"null"),
        Val::Bool(true) => out.extend_from_slice(b"true"),
        Val::Bool(false) => out.extend_from_slice(b"false"),
        Val::Num(number) => write_number(out, number, style.numbers),
        Val::BStr(bytes) | Val::TStr(bytes) => text::write_string(out, bytes, style.escapes),
        Val::Arr(items) => {
            out.push(b'[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    out.push(b',');
                }
                write(out, item, style)?;
            }
            out.push(b']');
        }
        Val::Obj(map) => {
            let mut entries = Vec::with_capacity(map.len());
            for (key, item) in map.iter() {
                entries.push((key_bytes(key)?, item));
            }
            entries.sort_unstable_by_key(|(key, _)| *key);
            out.push(b'{');
            for (position, (key, item)) in entries.into_iter().enumerate() {
                if position > 0 {
                    out.push(b',');
                }
                text::write_string(out, key, style.escapes);
                out.push(b':');
                write(out, item, style)?;
            }
            out.push(b'}');
        }
    }
    Ok(())
}

fn key_bytes(key: &Val) -> Result<&[u8], WriteError> {
    match key {
        Val::TStr(bytes) | Val::BStr(bytes) => Ok(bytes),
        other => Err(WriteError::Key(other.to_string())),
    }
}

fn write_number(out: &mut Vec<u8>, number: &Num, numbers: Numbers) {
    match (number, numbers) {
        (Num::Int(int), Numbers::Exact) => out.extend_from_slice(int.to_string().as_bytes()),
        (Num::BigInt(int), Numbers::Exact) => out.extend_from_slice(int.to_string().as_bytes()),
        (other, _) => {
            let float = as_f64(other);
            if float.is_nan() {
                out.extend_from_slice(b"null");
            } else {
                write_f64(out, float.clamp(f64::MIN, f64::MAX));
            }
        }
    }
}

fn as_f64(number: &Num) -> f64 {
    match number {
        #[expect(clippy::cast_precision_loss, reason = "the original rounds to a 64-bit float as well")]
        Num::Int(int) => *int as f64,
        Num::Float(float) => *float,
        // Both print digits that Rust reads back to the nearest float.
        Num::BigInt(int) => int.to_string().parse().unwrap_or(f64::NAN),
        Num::Dec(text) => text.parse().unwrap_or(f64::NAN),
    }
}

/// Text of `value` in the form described above.
pub fn to_vec(value: &Val, numbers: Numbers) -> Result<Vec<u8>, WriteError> {
    let mut out = Vec::new();
    write_value(&mut out, value, numbers)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_objects_as_go_does() {
        for (case, input, expected) in [
            ("sorted", r#"{"b":1,"a":[true,null,{}]}"#, r#"{"a":[true,null,{}],"b":1}"#),
            ("html", "\"<&>\u{2028}é\"", "\"\\u003c\\u0026\\u003e\\u2028é\""),
            ("control", r#""\u0008\t\n\r\u001f\u007f\"\\/""#, "\"\\u0008\\t\\n\\r\\u001f\u{7f}\\\"\\\\/\""),
            ("exact_integer", "123456789012345678", "123456789012345678"),
            ("float", "1.50", "1.5"),
            ("small", "0.0000003", "3e-07"),
            ("large", "1e21", "1e+21"),
            ("whole_float", "1e3", "1000"),
        ] {
            println!("case {case}");
            let value = jaq_json::read::parse_single(input.as_bytes()).unwrap();
            assert_eq!(
                String::from_utf8(to_vec(&value, Numbers::Exact).unwrap()).unwrap(),
                expected,
                "{case}"
            );
        }
    }

    #[test]
    fn filter_results_are_rounded_to_floats() {
        for (input, expected) in [
            ("123456789012345678", "123456789012345680"),
            ("1e17", "100000000000000000"),
            ("-0", "0"),
            ("12345678901234567890123", "1.2345678901234568e+22"),
        ] {
            println!("case {input}");
            let value = jaq_json::read::parse_single(input.as_bytes()).unwrap();
            assert_eq!(
                String::from_utf8(to_vec(&value, Numbers::Float).unwrap()).unwrap(),
                expected,
                "{input}"
            );
        }
    }

    #[test]
    fn texts_of_jq() {
        for (case, input, expected) in [
            ("html", r#""<&>\u2028""#, "\"<&>\u{2028}\""),
            ("looks_escaped", r#""\\u003c""#, r#""\\u003c""#),
            ("control", r#""\u0001\b\f\t""#, r#""\u0001\b\f\t""#),
            ("integer", r#"{"b":[12345678901234567890],"a":1.0}"#, r#"{"a":1,"b":[12345678901234567890]}"#),
        ] {
            println!("case {case}");
            assert_eq!(
                jq_text(&jaq_json::read::parse_single(input.as_bytes()).unwrap()).unwrap(),
                expected,
                "{case}"
            );
        }
    }

    #[test]
    fn what_json_cannot_hold_is_replaced_as_by_jq() {
        assert_eq!(to_vec(&Val::from(f64::NAN), Numbers::Float).unwrap(), b"null");
        assert_eq!(
            to_vec(&Val::from(f64::NEG_INFINITY), Numbers::Float).unwrap(),
            b"-1.7976931348623157e+308"
        );
    }
}
