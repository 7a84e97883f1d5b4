//! Reading the text of an object.

use std::sync::Arc;

use jaq_json::Val;

/// Levels of arrays and objects that a text may have. Reading, filtering and writing recurse, and every user who may create a
/// custom resource decides how deep: the stack has to be enough for it.
pub const MAX_DEPTH: usize = 1000;

/// Why a text is not read.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// It is not JSON.
    #[error("it is not JSON: {0}")]
    Json(String),
    /// It has too many levels.
    #[error("it has more than {MAX_DEPTH} levels")]
    TooDeep,
}

/// Reads one JSON value. The keys of its objects are sorted: `to_entries`, `.[]` and `..` go through them in this order,
/// as in the original, and as on what kubectl prints.
pub fn parse(text: &[u8]) -> Result<Val, ParseError> {
    if is_too_deep(text) {
        return Err(ParseError::TooDeep);
    }
    let mut value =
        jaq_json::read::parse_single(text).map_err(|error| ParseError::Json(error.to_string()))?;
    sort_keys(&mut value);
    Ok(value)
}

/// Whether brackets outside of strings are nested too deep.
fn is_too_deep(text: &[u8]) -> bool {
    let (mut depth, mut position) = (0_usize, 0);
    while let Some(&byte) = text.get(position) {
        match byte {
            b'"' => position += string_length(&text[position + 1..]),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return true;
        }
        position += 1;
    }
    false
}

/// Bytes of a string after its first quote, the last one included.
fn string_length(text: &[u8]) -> usize {
    let mut length = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &text[length..]) {
        length += found + 1;
        if text[length - 1] == b'"' {
            return length;
        }
        // The character after a backslash is part of the string.
        length = (length + 1).min(text.len());
    }
    text.len()
}

fn sort_keys(value: &mut Val) {
    match value {
        Val::Arr(items) => {
            if let Some(items) = Arc::get_mut(items) {
                items.iter_mut().for_each(sort_keys);
            }
        }
        Val::Obj(map) => {
            if let Some(map) = Arc::get_mut(map) {
                map.values_mut().for_each(sort_keys);
                if !map.keys().is_sorted() {
                    map.sort_unstable_keys();
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted() {
        for (text, expected) in [
            (r#"{"b":{"d":1,"c":[{"f":1,"e":2}]},"a":2}"#, r#"{"a":2,"b":{"c":[{"e":2,"f":1}],"d":1}}"#),
            (r#"["[[\\\"[", "\\\\"]"#, r#"["[[\\\"[","\\\\"]"#),
        ] {
            println!("case {text}");
            assert_eq!(parse(text.as_bytes()).unwrap().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn the_stack_of_a_thread_is_enough_for_the_deepest_text() {
        let text = |depth: usize| [r#"{"a":"#.repeat(depth), "1".to_owned(), "}".repeat(depth)].concat();
        assert!(matches!(parse(text(MAX_DEPTH + 1).as_bytes()), Err(ParseError::TooDeep)));
        assert!(matches!(parse("[".repeat(1 << 20).as_bytes()), Err(ParseError::TooDeep)));
        let deepest = text(MAX_DEPTH);
        let written = std::thread::Builder::new().stack_size(1 << 20).spawn(move || {
            let value = parse(deepest.as_bytes()).unwrap();
            let filter = crate::jq::Filter::compile("[.. | numbers], tojson").unwrap();
            assert_eq!(filter.run(value.clone()).unwrap().len(), 2);
            crate::json::to_vec(&value, crate::json::Numbers::Exact).unwrap().len()
        });
        assert_eq!(written.unwrap().join().unwrap(), 6 * MAX_DEPTH + 1);
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for text in ["", "{", "1 2"] {
            assert!(matches!(parse(text.as_bytes()), Err(ParseError::Json(_))), "{text}");
        }
    }
}
