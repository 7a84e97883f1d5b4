//! Reads the kind of an event, and the name and version of an object, before anything is parsed.

use super::members::{Members, member};

/// The name and the version of an object, read without a parser.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head<'a> {
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) version: &'a str,
    /// All of the text except the version.
    pub(super) rest: [&'a [u8]; 2],
}

/// The head of an object. `None` when a part of it is missing, or is no plain string.
pub(super) fn head(object: &[u8]) -> Option<Head<'_>> {
    let metadata = member(object, "metadata")?;
    let (mut namespace, mut name, mut version) = ("", None, None);
    for member in Members::of(metadata)? {
        let (key, value) = member?;
        match key {
            b"namespace" => namespace = plain_text(value)?,
            b"name" => name = Some(plain_text(value)?),
            b"resourceVersion" => version = Some(plain_text(value)?),
            _ => {}
        }
    }
    let version = version?;
    let begin = version.as_ptr() as usize - object.as_ptr() as usize;
    let rest = [&object[..begin], &object[begin + version.len()..]];
    Some(Head { namespace, name: name?, version, rest })
}

/// The text of a string without escapes.
fn plain_text(value: &[u8]) -> Option<&str> {
    let text = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if text.contains(&b'\\') { None } else { std::str::from_utf8(text).ok() }
}

/// The kind of an event and its object, as text.
pub(super) fn split_event(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let is_text = |value: &&[u8]| value.len() >= 2 && value.starts_with(b"\"") && value.ends_with(b"\"");
    usual_event(line).or_else(|| {
        let kind = member(line, "type").filter(is_text)?;
        Some((&kind[1..kind.len() - 1], member(line, "object")?))
    })
}

/// The same for events in the form that API servers write: then the end of the object need not be searched.
fn usual_event(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line.strip_prefix(b"{\"type\":\"")?;
    let end = memchr::memchr(b'"', rest)?;
    let object = rest[end..].strip_prefix(b"\",\"object\":")?.strip_suffix(b"}")?;
    Some((&rest[..end], object))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_without_a_parser() {
        let object =
            br#"{"kind":"K","metadata":{"resourceVersion":"12","name":"n","namespace":"ns"},"a":"12"}"#;
        let found = head(object).unwrap();
        assert_eq!((found.namespace, found.name, found.version), ("ns", "n", "12"));
        assert_eq!(
            found.rest.concat(),
            br#"{"kind":"K","metadata":{"resourceVersion":"","name":"n","namespace":"ns"},"a":"12"}"#
        );
        for other in [
            &br#"{"metadata":{"name":"n"}}"#[..],
            br#"{"metadata":{"name":"\u0041","resourceVersion":"1"}}"#,
            br#"{"metadata":{"name":"n","resourceVersion":1}}"#,
            b"[]",
        ] {
            assert_eq!(head(other), None);
        }
    }

    #[test]
    fn an_event_is_taken_apart() {
        for (line, expected) in [
            (r#"{"type":"ADDED","object":{"type":"x","s":"}"}}"#, Some(("ADDED", r#"{"type":"x","s":"}"}"#))),
            (r#"{"object":{"a":1}, "type": "DELETED"}"#, Some(("DELETED", r#"{"a":1}"#))),
            (r#"{"type": "ADDED","object":{"a":1} }"#, Some(("ADDED", r#"{"a":1}"#))),
            (r#"{"type":1,"object":{}}"#, None),
            (r#"{"type":"ADDED"}"#, None),
        ] {
            println!("case {line}");
            let text = |bytes| std::str::from_utf8(bytes).unwrap();
            assert_eq!(
                split_event(line.as_bytes()).map(|(kind, object)| (text(kind), text(object))),
                expected,
                "{line}"
            );
        }
    }
}
