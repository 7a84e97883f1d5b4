//! Cuts the needed parts out of an object's text, so that the rest is never parsed.

use super::members::{Members, Next};
use super::store::View;
use crate::jq::{self, Keys};

/// The fields that are always needed: the object's name, and the version to detect changes by.
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
    /// The parts of an object that `views` need.
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

    /// Whether the needed parts except the version decide all that `views` see. They do not if a view sees every version, or if a
    /// filter reads the clock.
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

    /// The text of an object with only the needed parts. `None` when all of it is needed, or when the text is not as expected.
    pub(super) fn prune(&self, object: &[u8]) -> Option<Vec<u8>> {
        let Self::Members(members) = self else { return None };
        let mut out = Vec::with_capacity(256);
        copy_members(object, members, true, &mut out)?;
        Some(out)
    }
}

/// Copies the needed members of the object. If nothing behind the object is needed, its text is read only up to the last needed
/// member: most of an object may follow it.
fn copy_members(object: &[u8], needed: &[(String, Needs)], last: bool, out: &mut Vec<u8>) -> Option<()> {
    out.push(b'{');
    let (mut members, mut seen) = (Members::of(object)?, vec![false; needed.len()]);
    let mut first = true;
    while let Next::Member(key) = members.key()? {
        let Some(index) = needed.iter().position(|(known, _)| known.as_bytes() == key) else {
            members.value()?;
            continue;
        };
        seen[index] = true;
        let last = last && seen.iter().all(|seen| *seen);
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        out.push(b'"');
        out.extend_from_slice(key);
        out.extend_from_slice(b"\":");
        match &needed[index].1 {
            Needs::Members(needed) if members.rest().first() == Some(&b'{') => {
                let value = if last { members.rest() } else { members.value()? };
                copy_members(value, needed, last, out)?;
            }
            _ => out.extend_from_slice(members.value()?),
        }
        if last {
            break;
        }
    }
    out.push(b'}');
    Some(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::jq::Filter;

    fn view(filter: &str, keep_object: bool) -> View {
        let filter = (!filter.is_empty()).then(|| Arc::new(Filter::compile(filter).unwrap()));
        View { filter, keep_object }
    }

    const OBJECT: &str = r#"{"kind":"K", "metadata": {"uid":"u","name":"n","labels":{"a":"}\"{"},"resourceVersion":"1"},
        "spec":{"list":[1,{"b":[]}],"n":-1.5e3,"t":true},"text":"\\","z":null }"#;

    #[test]
    fn what_is_needed_is_cut_out() {
        for (case, filter, expected) in [
            ("nothing_more", "", r#"{"metadata":{"name":"n","resourceVersion":"1"}}"#),
            ("member", ".spec.n", r#"{"metadata":{"name":"n","resourceVersion":"1"},"spec":{"n":-1.5e3}}"#),
            (
                "nested",
                "{l: .metadata.labels, s: .spec.list}",
                r#"{"metadata":{"name":"n","labels":{"a":"}\"{"},"resourceVersion":"1"},"spec":{"list":[1,{"b":[]}]}}"#,
            ),
            ("below_no_object", ".text.x", r#"{"metadata":{"name":"n","resourceVersion":"1"},"text":"\\"}"#),
            ("missing", ".none.x", r#"{"metadata":{"name":"n","resourceVersion":"1"}}"#),
            ("last", ".z", r#"{"metadata":{"name":"n","resourceVersion":"1"},"z":null}"#),
            (
                "whole_and_part",
                ".spec.t, .spec | .",
                r#"{"metadata":{"name":"n","resourceVersion":"1"},"spec":{"list":[1,{"b":[]}],"n":-1.5e3,"t":true}}"#,
            ),
        ] {
            println!("case {case}");
            let pruned = Needs::of(&[view(filter, false)]).prune(OBJECT.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(pruned).unwrap(), expected, "{case}");
        }
    }

    #[test]
    fn everything_is_needed_when_one_view_needs_it() {
        for view_of_all in [view(".spec", true), view("del(.x)", false)] {
            assert_eq!(Needs::of(&[view(".spec", false), view_of_all]), Needs::All);
        }
    }

    #[test]
    fn the_needs_decide_unless_more_matters() {
        let cases: [(&str, &[&str], bool); 4] = [
            ("filters", &[".a", ".b"], true),
            ("every_version", &[".a", ""], false),
            ("clock", &[".a | now"], false),
            ("everything", &["."], false),
        ];
        for (case, filters, expected) in cases {
            let views: Vec<View> = filters.iter().map(|filter| view(filter, false)).collect();
            assert_eq!(Needs::of(&views).decide(&views), expected, "{case}");
        }
    }

    #[test]
    fn metadata_is_enough_when_nothing_else_is_read() {
        let cases: [(&str, &[&str], bool); 5] = [
            ("names_only", &[""], true),
            ("metadata", &[".metadata.labels", ".metadata | .name"], true),
            ("more", &[".metadata.labels", ".data.k"], false),
            ("kind", &["[.kind, .metadata.name]"], false),
            ("everything", &["."], false),
        ];
        for (case, filters, expected) in cases {
            let views: Vec<View> = filters.iter().map(|filter| view(filter, false)).collect();
            assert_eq!(Needs::of(&views).are_metadata(), expected, "{case}");
            let kept = View { keep_object: true, ..view(".metadata.name", false) };
            assert!(!Needs::of(&[kept]).are_metadata(), "{case}");
        }
    }

    /// Wherever the text is cut, there is no panic, no read beyond its end, and no partial value.
    #[test]
    fn what_is_not_whole_is_not_cut() {
        for (case, filter) in [("last", ".z"), ("first", ".kind"), ("nested", ".spec.list")] {
            println!("case {case}");
            let needs = Needs::of(&[view(filter, false)]);
            let whole = needs.prune(OBJECT.as_bytes()).unwrap();
            for length in 0..OBJECT.len() {
                let pruned = needs.prune(&OBJECT.as_bytes()[..length]);
                assert!(pruned.is_none_or(|pruned| pruned == whole), "{case}: {length}");
            }
        }
    }

    /// A byte that is no JSON ends the reading, so what is in front of it is all that was read.
    #[test]
    fn nothing_is_read_behind_the_last_part_that_is_needed() {
        for (case, data, expected) in [
            ("nested", r#""data":{"k":"v""#, Some(r#""data":{"k":"v"}"#)),
            ("not_all_yet", r#""data":{"j":"v""#, None),
        ] {
            println!("case {case}");
            let metadata = r#""metadata":{"name":"n","resourceVersion":"1"}"#;
            let needs = Needs::of(&[view(".data.k", false)]);
            let pruned = needs.prune(format!("{{{metadata},{data},\u{1}").as_bytes());
            let expected = expected.map(|data| format!("{{{metadata},{data}}}"));
            assert_eq!(pruned.map(|text| String::from_utf8(text).unwrap()), expected, "{case}");
        }
    }
}
