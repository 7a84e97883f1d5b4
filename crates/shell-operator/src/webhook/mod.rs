//! Answering the API server: admission of requests and conversion of custom resources.
//!
//! Pure parts: addresses ([`path_of`]), conversion paths ([`Conversions`]), replies ([`admission`], [`conversion`]) and the
//! objects that point the API server to the webhooks ([`objects`]). [`server`] serves them with certificates that may change
//! while it runs; [`certificates`] makes such certificates.

pub mod admission;
pub mod certificates;
pub mod conversion;
pub mod objects;
pub mod server;

mod chain;
mod names;

pub use chain::{Conversions, Step};
pub use names::path_of;

/// JSON text as Go's encoder writes it: without spaces, and with some characters escaped. Everything else stays unchanged, also
/// the order of keys and the form of numbers.
pub(crate) fn compact(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let (mut in_string, mut after_backslash) = (false, false);
    for c in json.chars() {
        match c {
            ' ' | '\t' | '\n' | '\r' if !in_string => continue,
            // These stand only inside strings.
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            other => text.push(other),
        }
        in_string ^= c == '"' && !after_backslash;
        after_backslash = c == '\\' && !after_backslash;
    }
    text
}

#[cfg(test)]
mod tests {

    #[test]
    fn text_is_compact() {
        for (json, expected) in [
            ("{ \"b\" : [1.0,\n\t2 ] }\r\n", r#"{"b":[1.0,2]}"#),
            (r#"{"a \\":" \" <&>"}"#, r#"{"a \\":" \" \u003c\u0026\u003e"}"#),
            ("\"\u{2028}\u{2029}\"", r#""\u2028\u2029""#),
        ] {
            assert_eq!(super::compact(json), expected, "{json}");
        }
    }
}
