//! Assignments as jq does them.
//!
//! jaq updates in place and refuses to go through what is not there: `null | .a = 1` is an error. In jq it makes
//! the object, and hooks count on it (`.metadata.labels.x = "y"` for an object without labels). So assignments
//! are written with paths, as jq's manual defines them, before the program is compiled.

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::path::{Part, Path};

/// Definitions that assignments become calls of, and those of jaq that are built on its own updates.
pub(super) const DEFINITIONS: &str = r"
def _setpath($path; $value): _set_path([$path, $value]);
def _assign(paths; $value): reduce path(paths) as $path (.; _setpath($path; $value));
def _modify(paths; f):
  reduce path(paths) as $path ([., []];
    .[0] as $value | [first($value | getpath($path) | f)] as $new
    | if $new == [] then [$value, .[1] + [$path]] else [($value | _setpath($path; $new[0])), .[1]] end)
  | . as [$value, $gone] | $value | _delete_paths($gone);
def setpath($path; $value): _setpath($path; $value);
def delpaths($paths): _delete_paths($paths);
def del(f): delpaths([path(f)]);
";

/// Name of the variable that holds an assignment's right side.
const RIGHT: &str = "$__right";

/// `term` with every assignment written as a call.
pub(super) fn rewrite(term: Term<&str>) -> Term<&str> {
    match term {
        Term::BinOp(left, op, right) => rewrite_operation(rewrite(*left), op, rewrite(*right)),
        Term::Str(format, parts) => Term::Str(format, parts.into_iter().map(rewrite_part).collect()),
        Term::Arr(inner) => Term::Arr(inner.map(rewrite_box)),
        Term::Obj(entries) => {
            let entry = |(key, value): (Term<_>, Option<Term<_>>)| (rewrite(key), value.map(rewrite));
            Term::Obj(entries.into_iter().map(entry).collect())
        }
        Term::Neg(inner) => Term::Neg(rewrite_box(inner)),
        Term::Label(name, inner) => Term::Label(name, rewrite_box(inner)),
        Term::Fold(name, source, pattern, terms) => {
            Term::Fold(name, rewrite_box(source), pattern, terms.into_iter().map(rewrite).collect())
        }
        Term::TryCatch(inner, catch) => Term::TryCatch(rewrite_box(inner), catch.map(rewrite_box)),
        Term::IfThenElse(branches, otherwise) => {
            let branch = |(condition, then)| (rewrite(condition), rewrite(then));
            Term::IfThenElse(branches.into_iter().map(branch).collect(), otherwise.map(rewrite_box))
        }
        Term::Def(definitions, inner) => {
            let definition = |def: Def<_>| Def { body: rewrite(def.body), ..def };
            Term::Def(definitions.into_iter().map(definition).collect(), rewrite_box(inner))
        }
        Term::Call(name, arguments) => Term::Call(name, arguments.into_iter().map(rewrite).collect()),
        Term::Path(inner, Path(parts)) => {
            let part = |(part, optional)| (rewrite_path_part(part), optional);
            Term::Path(rewrite_box(inner), Path(parts.into_iter().map(part).collect()))
        }
        other @ (Term::Id | Term::Recurse | Term::Num(_) | Term::Break(_) | Term::Var(_)) => other,
    }
}

fn rewrite_operation<'s>(left: Term<&'s str>, op: BinaryOp<&'s str>, right: Term<&'s str>) -> Term<&'s str> {
    let with_right = |call: Term<&'s str>| {
        let pipe = BinaryOp::Pipe(Some(Pattern::Var(RIGHT)));
        Term::BinOp(Box::new(right.clone()), pipe, Box::new(call))
    };
    let modify = |op| {
        let value = Term::BinOp(Box::new(Term::Id), op, Box::new(Term::Var(RIGHT)));
        Term::Call("_modify", vec![left.clone(), value])
    };
    match op {
        BinaryOp::Assign => with_right(Term::Call("_assign", vec![left, Term::Var(RIGHT)])),
        BinaryOp::Update => Term::Call("_modify", vec![left, right]),
        BinaryOp::UpdateMath(math) => with_right(modify(BinaryOp::Math(math))),
        BinaryOp::UpdateAlt => with_right(modify(BinaryOp::Alt)),
        other => Term::BinOp(Box::new(left), other, Box::new(right)),
    }
}

#[expect(clippy::boxed_local, reason = "the syntax tree is made of boxes")]
fn rewrite_box(term: Box<Term<&str>>) -> Box<Term<&str>> {
    Box::new(rewrite(*term))
}

fn rewrite_part<'s>(part: StrPart<&'s str, Term<&'s str>>) -> StrPart<&'s str, Term<&'s str>> {
    match part {
        StrPart::Term(term) => StrPart::Term(rewrite(term)),
        other => other,
    }
}

fn rewrite_path_part(part: Part<Term<&str>>) -> Part<Term<&str>> {
    match part {
        Part::Index(index) => Part::Index(rewrite(index)),
        Part::Range(from, to) => Part::Range(from.map(rewrite), to.map(rewrite)),
    }
}
