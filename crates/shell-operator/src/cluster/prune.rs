//! Cutting out of an object's text what is needed of it, so that the rest is never parsed.
//!
//! The text is trusted to be JSON: the API server wrote it. What is cut out is parsed by who uses it.

use super::store::View;
use crate::jq::{self, Keys};

/// What is always needed: the object's name, and the version to see changes by.
const METADATA: [&str; 3] = ["name", "namespace", "resourceVersion"];

/// Which parts of objects are needed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// A value with all that is in it.
    All,
    /// Some members of an object.
    Members(Vec<(String, Needs)>),
}

impl Needs {
    /// What `views` need of an object.
    pub(super) fn of(views: &[View]) -> Self {
        let mut needs = Self::Members(Vec::new());
        for key in METADATA {
            needs.add(&["metadata".to_owned(), key.to_owned()]);
        }
        for view in views {
            let read =
                view.filter.as_ref().map_or_else(|| Some(Vec::new()), |filter| jq::reads(filter.source()));
            match read {
                Some(read) if !view.keep_object => read.iter().for_each(|keys: &Keys| needs.add(keys)),
                _ => return Self::All,
            }
        }
        needs
    }

    /// Whether all that `views` see follows from what is needed but the version: not so when one sees every version, or
    /// when a filter reads the clock.
    pub(super) fn decide(&self, views: &[View]) -> bool {
        let timeless =
            |view: &View| view.filter.as_ref().is_some_and(|filter| !filter.source().contains("now"));
        *self != Self::All && views.iter().all(timeless)
    }

    /// Whether nothing outside of an object's metadata is needed.
    pub(super) fn are_metadata(&self) -> bool {
        matches!(self, Self::Members(members) if members.iter().all(|(key, _)| key == "metadata"))
    }

    fn add(&mut self, keys: &[String]) {
        let Some((key, rest)) = keys.split_first() else {
            *self = Self::All;
            return;
        };
        let Self::Members(members) = self else { return };
        if let Some((_, needs)) = members.iter_mut().find(|(known, _)| known == key) {
            needs.add(rest);
        } else {
            let mut needs = Self::Members(Vec::new());
            needs.add(rest);
            members.push((key.clone(), needs));
        }
    }

    /// The text of an object with what is needed only. `None` when all of it is, or when the text is not as expected.
    pub(super) fn prune(&self, object: &[u8]) -> Option<Vec<u8>> {
        let Self::Members(members) = self else { return None };
        let mut out = Vec::with_capacity(256);
        copy_members(object, members, &mut out)?;
        Some(out)
    }
}

/// Copies those of the object's members that are needed.
fn copy_members(object: &[u8], needed: &[(String, Needs)], out: &mut Vec<u8>) -> Option<()> {
    out.push(b'{');
    let mut first = true;
    for member in Members::of(object)? {
        let (key, value) = member?;
        let Some((_, needs)) = needed.iter().find(|(known, _)| known.as_bytes() == key) else { continue };
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        out.push(b'"');
        out.extend_from_slice(key);
        out.extend_from_slice(b"\":");
        match needs {
            Needs::Members(needed) if value.first() == Some(&b'{') => copy_members(value, needed, out)?,
            _ => out.extend_from_slice(value),
        }
    }
    out.push(b'}');
    Some(())
}

/// What names an object and its version, without a parser.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head<'a> {
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) version: &'a str,
    /// All of the text but the version.
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

/// The same, when it is written as API servers do: then the object need not be looked through for its end.
fn usual_event(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line.strip_prefix(b"{\"type\":\"")?;
    let end = memchr::memchr(b'"', rest)?;
    let object = rest[end..].strip_prefix(b"\",\"object\":")?.strip_suffix(b"}")?;
    Some((&rest[..end], object))
}

/// The member `key` of an object, as text.
fn member<'a>(object: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let found = Members::of(object)?.find(|member| member.is_none_or(|(known, _)| known == key.as_bytes()));
    found.flatten().map(|(_, value)| value)
}

/// The members of an object: keys without their quotes, values as text. `None` where the text is not as expected.
struct Members<'a> {
    text: &'a [u8],
    /// Where the next member begins, or a comma before it.
    at: usize,
}

impl<'a> Members<'a> {
    fn of(object: &'a [u8]) -> Option<Self> {
        let at = skip_spaces(object, 0);
        (object.get(at) == Some(&b'{')).then_some(Self { text: object, at: at + 1 })
    }

    fn read(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let begin = self.at;
        let end = skip_value(self.text, begin)?;
        let key = self.text.get(begin + 1..end.checked_sub(1)?)?;
        let colon = skip_spaces(self.text, end);
        if self.text.get(begin) != Some(&b'"') || self.text.get(colon) != Some(&b':') {
            return None;
        }
        let begin = skip_spaces(self.text, colon + 1);
        let end = skip_value(self.text, begin)?;
        self.at = end;
        Some((key, &self.text[begin..end]))
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = Option<(&'a [u8], &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        self.at = skip_spaces(self.text, self.at);
        if self.text.get(self.at) == Some(&b',') {
            self.at = skip_spaces(self.text, self.at + 1);
        }
        match self.text.get(self.at) {
            Some(b'}') => None,
            // Nothing is read behind an error.
            _ if self.at > self.text.len() => None,
            _ => {
                let member = self.read();
                if member.is_none() {
                    self.at = self.text.len() + 1;
                }
                Some(member)
            }
        }
    }
}

fn skip_spaces(text: &[u8], at: usize) -> usize {
    let spaces = text.get(at..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_whitespace());
    at + spaces.count()
}

/// Where the value that begins at `at` ends.
fn skip_value(text: &[u8], at: usize) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, at);
    loop {
        match text.get(at)? {
            b'"' => at = skip_string(text, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            _ if depth > 0 => at += 1,
            // A number or a word, up to what follows a value.
            _ => {
                let rest =
                    text[at..].iter().position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n'));
                return Some(rest.map_or(text.len(), |length| at + length)).filter(|end| *end > at);
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

/// Where the string whose first quote is at `at` ends.
fn skip_string(text: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::jq::Filter;
    use rstest::rstest;

    fn view(filter: &str, keep_object: bool) -> View {
        let filter = (!filter.is_empty()).then(|| Arc::new(Filter::compile(filter).unwrap()));
        View { filter, keep_object }
    }

    const OBJECT: &str = r#"{"kind":"K", "metadata": {"uid":"u","name":"n","labels":{"a":"}\"{"},"resourceVersion":"1"},
        "spec":{"list":[1,{"b":[]}],"n":-1.5e3,"t":true},"text":"\\","z":null }"#;

    #[rstest]
    #[case::nothing_more("", r#"{"metadata":{"name":"n","resourceVersion":"1"}}"#)]
    #[case::member(".spec.n", r#"{"metadata":{"name":"n","resourceVersion":"1"},"spec":{"n":-1.5e3}}"#)]
    #[case::nested(
        "{l: .metadata.labels, s: .spec.list}",
        r#"{"metadata":{"name":"n","labels":{"a":"}\"{"},"resourceVersion":"1"},"spec":{"list":[1,{"b":[]}]}}"#
    )]
    #[case::below_no_object(".text.x", r#"{"metadata":{"name":"n","resourceVersion":"1"},"text":"\\"}"#)]
    #[case::missing(".none.x", r#"{"metadata":{"name":"n","resourceVersion":"1"}}"#)]
    #[case::last(".z", r#"{"metadata":{"name":"n","resourceVersion":"1"},"z":null}"#)]
    #[case::whole_and_part(
        ".spec.t, .spec | .",
        r#"{"metadata":{"name":"n","resourceVersion":"1"},"spec":{"list":[1,{"b":[]}],"n":-1.5e3,"t":true}}"#
    )]
    fn what_is_needed_is_cut_out(#[case] filter: &str, #[case] expected: &str) {
        let pruned = Needs::of(&[view(filter, false)]).prune(OBJECT.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(pruned).unwrap(), expected);
    }

    #[test]
    fn everything_is_needed_when_one_view_needs_it() {
        for view_of_all in [view(".spec", true), view("del(.x)", false)] {
            assert_eq!(Needs::of(&[view(".spec", false), view_of_all]), Needs::All);
        }
    }

    #[rstest]
    #[case::filters(&[".a", ".b"], true)]
    #[case::every_version(&[".a", ""], false)]
    #[case::clock(&[".a | now"], false)]
    #[case::everything(&["."], false)]
    fn the_needs_decide_unless_more_matters(#[case] filters: &[&str], #[case] expected: bool) {
        let views: Vec<View> = filters.iter().map(|filter| view(filter, false)).collect();
        assert_eq!(Needs::of(&views).decide(&views), expected);
    }

    #[rstest]
    #[case::names_only(&[""], true)]
    #[case::metadata(&[".metadata.labels", ".metadata | .name"], true)]
    #[case::more(&[".metadata.labels", ".data.k"], false)]
    #[case::kind(&["[.kind, .metadata.name]"], false)]
    #[case::everything(&["."], false)]
    fn metadata_is_enough_when_nothing_else_is_read(#[case] filters: &[&str], #[case] expected: bool) {
        let views: Vec<View> = filters.iter().map(|filter| view(filter, false)).collect();
        assert_eq!(Needs::of(&views).are_metadata(), expected);
        let kept = View { keep_object: true, ..view(".metadata.name", false) };
        assert!(!Needs::of(&[kept]).are_metadata());
    }

    /// Wherever the text is cut, there is no panic and no end of reading beyond it.
    #[test]
    fn what_is_not_whole_is_not_cut() {
        let needs = Needs::of(&[view(".z", false)]);
        for length in 0..OBJECT.len() {
            assert_eq!(needs.prune(&OBJECT.as_bytes()[..length]), None, "{length}");
        }
    }

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

    #[rstest]
    #[case(r#"{"type":"ADDED","object":{"type":"x","s":"}"}}"#, Some(("ADDED", r#"{"type":"x","s":"}"}"#)))]
    #[case(r#"{"object":{"a":1}, "type": "DELETED"}"#, Some(("DELETED", r#"{"a":1}"#)))]
    #[case(r#"{"type": "ADDED","object":{"a":1} }"#, Some(("ADDED", r#"{"a":1}"#)))]
    #[case(r#"{"type":1,"object":{}}"#, None)]
    #[case(r#"{"type":"ADDED"}"#, None)]
    fn an_event_is_taken_apart(#[case] line: &str, #[case] expected: Option<(&str, &str)>) {
        let text = |bytes| std::str::from_utf8(bytes).unwrap();
        assert_eq!(split_event(line.as_bytes()).map(|(kind, object)| (text(kind), text(object))), expected);
    }

    #[test]
    fn a_member_is_found() {
        let line = br#"{"type":"ADDED","object":{"type":"x"}}"#;
        assert_eq!(member(line, "type"), Some(&b"\"ADDED\""[..]));
        assert_eq!(member(line, "object"), Some(&br#"{"type":"x"}"#[..]));
        assert_eq!(member(line, "none"), None);
    }
}
