//! Finds the parts of its input that a filter reads, as far as its text shows them.
//!
//! Most filters of hooks pick a few fields. Knowing which saves reading the rest of every object that changes.

use jaq_core::load::parse::{BinaryOp, Term};
use jaq_core::path::{Part, Path};

/// Keys from the input down to a value that is read, with all that is in it.
pub type Keys = Vec<String>;

/// The values that the program reads; `None` when it may read anything.
pub fn reads(source: &str) -> Option<Vec<Keys>> {
    let term = jaq_core::load::parse(source, |parser| parser.term())?;
    let mut found = Vec::new();
    collect(&term, &mut found).then_some(found)
}

/// Adds the values that `term` reads when it is applied to the whole input. False when that may be anything.
fn collect(term: &Term<&str>, found: &mut Vec<Keys>) -> bool {
    let mut all = |terms: &[&Term<&str>]| terms.iter().all(|term| collect(term, found));
    match term {
        Term::Num(_) | Term::Var(_) | Term::Arr(None) => true,
        Term::Call(name, arguments) => {
            arguments.is_empty() && matches!(*name, "null" | "true" | "false" | "empty")
        }
        Term::Str(_, parts) => parts.iter().all(|part| match part {
            jaq_core::load::lex::StrPart::Term(term) => collect(term, found),
            _ => true,
        }),
        // The handler of an error sees only the error.
        Term::Arr(Some(term)) | Term::Neg(term) | Term::TryCatch(term, _) => all(&[term]),
        Term::Obj(entries) => entries.iter().all(|(key, value)| match value {
            Some(value) => collect(key, found) && collect(value, found),
            None => field(key).is_some_and(|key| {
                found.push(vec![key]);
                true
            }),
        }),
        Term::BinOp(left, operator, right) => match operator {
            // The right side of a pipe sees only values of the left side, which are known as a whole.
            BinaryOp::Pipe(None) if matches!(**left, Term::Id) => all(&[right]),
            BinaryOp::Pipe(None) => all(&[left]),
            BinaryOp::Assign | BinaryOp::Update | BinaryOp::UpdateMath(_) | BinaryOp::UpdateAlt => false,
            _ => all(&[left, right]),
        },
        Term::IfThenElse(cases, Some(otherwise)) => {
            cases.iter().all(|(condition, then)| all(&[condition, then])) && all(&[otherwise])
        }
        Term::Path(head, path) => collect_path(head, path, found),
        _ => false,
    }
}

fn collect_path(head: &Term<&str>, Path(parts): &Path<Term<&str>>, found: &mut Vec<Keys>) -> bool {
    let is_field =
        |part: &&(Part<Term<&str>>, _)| matches!(&part.0, Part::Index(key) if field(key).is_some());
    let mut rest = parts.as_slice();
    if matches!(head, Term::Id) {
        let count = parts.iter().take_while(is_field).count();
        let keys = parts[..count].iter().filter_map(|(part, _)| match part {
            Part::Index(key) => field(key),
            Part::Range(..) => None,
        });
        found.push(keys.collect());
        rest = &parts[count..];
        if count == 0 {
            return false;
        }
    } else if !collect(head, found) {
        return false;
    }
    // Positions may be computed from the input.
    rest.iter().all(|(part, _)| match part {
        Part::Index(term) => collect(term, found),
        Part::Range(from, to) => from.iter().chain(to).all(|term| collect(term, found)),
    })
}

/// The key that a term is, when it is plain letters, digits and `_`: JSON text contains it unchanged.
fn field(term: &Term<&str>) -> Option<String> {
    let Term::Str(None, parts) = term else { return None };
    let [jaq_core::load::lex::StrPart::Str(text)] = parts.as_slice() else { return None };
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    plain.then(|| (*text).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read() {
        for (source, expected) in [
            (".data.k", Some("data.k")),
            (" .metadata.labels # why", Some("metadata.labels")),
            (".spec.items[].name", Some("spec.items")),
            (".a.b?", Some("a.b")),
            (".a[\"b\"].c", Some("a.b.c")),
            (".a[\"x/y\"]", Some("a")),
            (".a[.b]", Some("a b")),
            ("{name: .metadata.name, spec, n: (.status.n // 0)}", Some("metadata.name spec status.n")),
            ("[.a, .b | length]", Some("a b")),
            (".spec | keys | .[0]", Some("spec")),
            (". | .a", Some("a")),
            (".a as $x | .b + $x", Some("a b")),
            ("\"\\(.a)-\\(.b.c)\"", Some("a b.c")),
            ("if .a == null then .b else empty end", Some("a b")),
            ("try .a.b catch .", Some("a.b")),
            ("if .a then .b end", None),
            (".", None),
            ("..", None),
            (".[]", None),
            (".[\"x/y\"]", None),
            ("del(.metadata)", None),
            (".a = 1", None),
            ("select(.a)", None),
            ("keys", None),
            ("@json", None),
            ("reduce .a[] as $x (0; . + $x)", None),
            ("def f: .a; f", None),
        ] {
            let found =
                reads(source).map(|all| all.iter().map(|keys| keys.join(".")).collect::<Vec<_>>().join(" "));
            assert_eq!(found.as_deref(), expected, "{source}");
        }
    }
}
