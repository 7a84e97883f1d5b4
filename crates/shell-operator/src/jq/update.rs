//! Rewrites assignments, slices of `null`, division by zero and `$__loc__` to behave as in jq, and counts steps.
//!
//! jaq updates in place and refuses missing values on the way: `null | .a = 1` is an error. In jq it creates the object, and
//! hooks rely on it (`.metadata.labels.x = "y"` for an object without labels). So assignments are rewritten with paths, as jq's
//! manual defines them, before the program is compiled.

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::ops::{Cmp, Math};
use jaq_core::path::{Opt, Part, Path};

/// Definitions that replace assignments, and the definitions of jaq that are built on its own updates.
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
/// Name of the variable that contains the value at the beginning of a path with a slice.
const WHOLE: &str = "$__whole";
/// Name of a variable whose value is not used: binding it counts a step.
const STEP: &str = "$__step";
/// Variable of jq that contains its position in the program.
const LOCATION: &str = "$__loc__";

/// Writes as calls of definitions what jaq has otherwise.
pub(super) struct Rewriter<'s> {
    /// The text of the program that the terms are slices of.
    source: &'s str,
}

impl<'s> Rewriter<'s> {
    /// For terms of `source`.
    pub(super) fn new(source: &'s str) -> Self {
        Self { source }
    }

    /// `term` with every assignment, division and `$__loc__` written as a call.
    pub(super) fn term(&self, term: Term<&'s str>) -> Term<&'s str> {
        match term {
            Term::BinOp(left, op, right) => operation(self.term(*left), op, self.term(*right)),
            Term::Str(format, parts) => {
                Term::Str(format, parts.into_iter().map(|part| self.string_part(part)).collect())
            }
            Term::Arr(inner) => Term::Arr(inner.map(|inner| self.boxed(inner))),
            Term::Obj(entries) => {
                let entry =
                    |(key, value): (_, Option<_>)| (self.term(key), value.map(|value| self.term(value)));
                Term::Obj(entries.into_iter().map(entry).collect())
            }
            Term::Neg(inner) => Term::Neg(self.boxed(inner)),
            Term::Label(name, inner) => Term::Label(name, self.boxed(inner)),
            Term::Fold(name, source, pattern, terms) => {
                Term::Fold(name, self.boxed(source), pattern, self.terms(terms))
            }
            Term::TryCatch(inner, catch) => {
                Term::TryCatch(self.boxed(inner), catch.map(|catch| self.boxed(catch)))
            }
            Term::IfThenElse(branches, otherwise) => {
                let branch = |(condition, then)| (self.term(condition), self.term(then));
                let otherwise = otherwise.map(|otherwise| self.boxed(otherwise));
                Term::IfThenElse(branches.into_iter().map(branch).collect(), otherwise)
            }
            Term::Def(definitions, inner) => {
                let definition = |def: Def<_>| Def { body: counted(self.term(def.body)), ..def };
                Term::Def(definitions.into_iter().map(definition).collect(), self.boxed(inner))
            }
            Term::Call(name, arguments) => Term::Call(name, self.terms(arguments)),
            Term::Path(inner, Path(parts)) => {
                let part = |(part, optional)| (self.path_part(part), optional);
                let iterates = parts.iter().any(|(part, _)| matches!(part, Part::Range(None, None)));
                let path = slices_of_null(self.boxed(inner), parts.into_iter().map(part).collect());
                if iterates { Term::Call("_steps", vec![path]) } else { path }
            }
            Term::Recurse => Term::Call("_steps", vec![Term::Recurse]),
            Term::Var(name) if name == LOCATION => self.location(name),
            other @ (Term::Id | Term::Num(_) | Term::Break(_) | Term::Var(_)) => other,
        }
    }

    /// `$__loc__`, found at `place`: the line follows from the text before it.
    fn location(&self, place: &'s str) -> Term<&'s str> {
        let offset = (place.as_ptr() as usize).saturating_sub(self.source.as_ptr() as usize);
        let before = self.source.get(..offset).unwrap_or_default();
        Term::Call("_location", vec![Term::Str(None, vec![StrPart::Str(before)])])
    }

    fn terms(&self, terms: Vec<Term<&'s str>>) -> Vec<Term<&'s str>> {
        terms.into_iter().map(|term| self.term(term)).collect()
    }

    #[expect(clippy::boxed_local, reason = "the syntax tree is made of boxes")]
    fn boxed(&self, term: Box<Term<&'s str>>) -> Box<Term<&'s str>> {
        Box::new(self.term(*term))
    }

    fn string_part(&self, part: StrPart<&'s str, Term<&'s str>>) -> StrPart<&'s str, Term<&'s str>> {
        match part {
            StrPart::Term(term) => StrPart::Term(self.term(term)),
            other => other,
        }
    }

    fn path_part(&self, part: Part<Term<&'s str>>) -> Part<Term<&'s str>> {
        match part {
            Part::Index(index) => Part::Index(self.term(index)),
            Part::Range(from, to) => {
                Part::Range(from.map(|from| self.term(from)), to.map(|to| self.term(to)))
            }
        }
    }
}

/// `.a[2:5]` of `null` is `null`, where jaq has an error.
fn slices_of_null<'s>(
    inner: Box<Term<&'s str>>,
    mut parts: Vec<(Part<Term<&'s str>>, Opt)>,
) -> Term<&'s str> {
    // Without both bounds it is `.[]`.
    let is_slice = |part: &Part<_>| matches!(part, Part::Range(from, to) if from.is_some() || to.is_some());
    let Some(position) = parts.iter().position(|(part, _)| is_slice(part)) else {
        return Term::Path(inner, Path(parts));
    };
    // Indices of a path are applied to the value at the path's beginning, so that value has to be remembered.
    let pipe = |left, right| Term::BinOp(Box::new(left), BinaryOp::Pipe(None), Box::new(right));
    let of_whole = |term| pipe(Term::Var(WHOLE), term);
    let rest: Vec<_> = parts
        .split_off(position)
        .into_iter()
        .map(|(part, optional)| match part {
            Part::Index(index) => (Part::Index(of_whole(index)), optional),
            Part::Range(from, to) => (Part::Range(from.map(of_whole), to.map(of_whole)), optional),
        })
        .collect();
    let is_null =
        Term::BinOp(Box::new(Term::Id), BinaryOp::Cmp(Cmp::Eq), Box::new(Term::Call("null", Vec::new())));
    let mut rest = rest.into_iter();
    let slice = Term::Path(Box::new(Term::Id), Path(rest.by_ref().take(1).collect()));
    let sliced = Term::IfThenElse(vec![(is_null, Term::Id)], Some(Box::new(slice)));
    let path = pipe(Term::Path(inner, Path(parts)), slices_of_null(Box::new(sliced), rest.collect()));
    Term::BinOp(Box::new(Term::Id), BinaryOp::Pipe(Some(Pattern::Var(WHOLE))), Box::new(path))
}

/// The body of a definition, which may call itself: each call is a step.
fn counted(body: Term<&str>) -> Term<&str> {
    let bind = BinaryOp::Pipe(Some(Pattern::Var(STEP)));
    Term::BinOp(Box::new(Term::Call("_step", Vec::new())), bind, Box::new(body))
}

fn operation<'s>(left: Term<&'s str>, op: BinaryOp<&'s str>, right: Term<&'s str>) -> Term<&'s str> {
    let with_right = |call: Term<&'s str>| {
        let pipe = BinaryOp::Pipe(Some(Pattern::Var(RIGHT)));
        Term::BinOp(Box::new(right.clone()), pipe, Box::new(call))
    };
    let modify = |op| {
        let value = operation(Term::Id, op, Term::Var(RIGHT));
        Term::Call("_modify", vec![left.clone(), value])
    };
    match op {
        BinaryOp::Assign => with_right(Term::Call("_assign", vec![left, Term::Var(RIGHT)])),
        BinaryOp::Update => Term::Call("_modify", vec![left, right]),
        BinaryOp::UpdateMath(math) => with_right(modify(BinaryOp::Math(math))),
        BinaryOp::UpdateAlt => with_right(modify(BinaryOp::Alt)),
        BinaryOp::Math(Math::Div) => Term::Call("_divide", vec![right, left]),
        BinaryOp::Math(Math::Mul) => Term::Call("_multiply", vec![right, left]),
        other => Term::BinOp(Box::new(left), other, Box::new(right)),
    }
}
