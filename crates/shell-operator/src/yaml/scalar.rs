//! Converts a plain word to a value.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Number, Value};

use super::{Dialect, Kind, Scalar};

/// The value of `scalar`.
pub(super) fn resolve(scalar: &Scalar, dialect: Dialect) -> Result<Value, String> {
    let text = scalar.text.as_str();
    match scalar.kind {
        Kind::Text => Ok(Value::String(text.to_owned())),
        Kind::Binary => binary(text).map(Value::String),
        Kind::Plain => plain(text, dialect),
    }
}

fn plain(text: &str, dialect: Dialect) -> Result<Value, String> {
    let number = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Err(format!("JSON has no number {text}")),
        _ if dialect == Dialect::Text && flag(text).is_some() => Value::from(flag(text)),
        _ if number => parse_number(text)?.map_or_else(|| Value::String(text.to_owned()), Value::Number),
        _ => Value::String(text.to_owned()),
    })
}

/// The booleans of YAML 1.1 that later versions do not have.
pub(crate) fn flag(text: &str) -> Option<bool> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

fn parse_number(text: &str) -> Result<Option<Number>, String> {
    if let ".inf" | ".Inf" | ".INF" = text.trim_start_matches(['+', '-']) {
        return Err(format!("JSON has no number {text}"));
    }
    let text = text.replace('_', "");
    Ok(integer(&text).or_else(|| float(&text)))
}

/// A whole number as Go writes it in programs: a leading 0 is octal.
fn integer(text: &str) -> Option<Number> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    // A number has no second sign.
    let number = digits.starts_with(|c: char| c.is_ascii_alphanumeric()).then_some(digits)?;
    let number = u64::from_str_radix(number, radix).ok()?;
    if negative { 0_i64.checked_sub_unsigned(number).map(Number::from) } else { Some(number.into()) }
}

fn float(text: &str) -> Option<Number> {
    if !text.chars().all(|c| c.is_ascii_digit() || "+-.eE".contains(c)) {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    // Go writes whole numbers without a fraction, and API servers insist on that.
    let whole = format!("{number:.0}").parse::<i64>().ok();
    #[expect(
        clippy::cast_precision_loss,
        clippy::float_cmp,
        reason = "whether it is the same number is the question"
    )]
    let whole = whole.filter(|whole| *whole as f64 == number);
    whole.map_or_else(|| Number::from_f64(number), |whole| Some(whole.into()))
}

fn binary(text: &str) -> Result<String, String> {
    let compact: String = text.split_whitespace().collect();
    let bytes = BASE64_STANDARD.decode(compact).map_err(|error| format!("!!binary: {error}"))?;
    String::from_utf8(bytes).map_err(|error| format!("!!binary: {error}"))
}
