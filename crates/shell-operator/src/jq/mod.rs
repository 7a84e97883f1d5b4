//! jq filters, compiled once and run in the process by jaq.
//!
//! A filter sees neither the environment nor files nor further inputs: `env` is empty as in the original, and
//! `input` does not exist.

mod budget;
mod functions;
mod paths;
mod reads;
mod update;

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use jaq_core::load::parse::Def;
use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, data};
use jaq_json::Val;
use serde_json::Value;

use crate::json::{self, Numbers};
pub use reads::{Keys, reads};
use update::Rewriter;

type Data = data::JustLut<Val>;

/// A compiled filter; cheap to share, safe to run from several threads at once.
pub struct Filter {
    source: String,
    program: Program,
}

enum Program {
    Jq(Box<jaq_core::Filter<Data>>),
    Function(Arc<dyn Fn(&Value) -> Value + Send + Sync>),
}

/// Why a filter could not be compiled or run.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum JqError {
    /// The text is not a jq program.
    #[error("compile jqFilter: {0}")]
    Compile(String),
    /// The program raised an error on this input.
    #[error("jqFilter failed: {0}")]
    Run(String),
    /// The program was ended: it takes too much.
    #[error("jqFilter failed: {0}")]
    Ended(&'static str),
    /// The result has no JSON form.
    #[error("jqFilter result: {0}")]
    Result(#[from] json::WriteError),
}

impl JqError {
    /// The message that may be shown if the input was an object of this kind: errors contain values.
    pub fn about(&self, kind: &str) -> String {
        match self {
            Self::Run(_) if kind == "Secret" => {
                "jqFilter failed; why is not shown, because it may be a part of the Secret".to_owned()
            }
            error => error.to_string(),
        }
    }
}

impl Filter {
    /// Compiles `source`.
    pub fn compile(source: &str) -> Result<Self, JqError> {
        if source.trim().is_empty() {
            return Err(JqError::Compile("the filter is empty".to_owned()));
        }
        let arena = Arena::default();
        // The first parse finds mistakes and reports where they are.
        let program = |code| File { code, path: () };
        Loader::new(jaq_defs()).load(&arena, program(source)).map_err(|errors| load_error(&errors))?;
        let term = jaq_core::load::parse(source, |parser| parser.term()).ok_or_else(|| {
            JqError::Compile("the program must be one expression, without imports".to_owned())
        })?;
        let main = Def { name: "_main", args: vec!["$ENV"], body: Rewriter::new(source).term(term) };
        let loader = Loader::new(jaq_defs().chain([main]));
        let modules = loader.load(&arena, program("_main({})")).map_err(|errors| load_error(&errors))?;
        let compiled = Compiler::default()
            .with_funs(functions::native())
            .compile(modules)
            .map_err(|errors| compile_error(&errors))?;
        Ok(Self { source: source.to_owned(), program: Program::Jq(Box::new(compiled)) })
    }

    /// A function in place of a program. It sees whole objects, and has no time limit, because it could only be ended together
    /// with its thread.
    pub fn function(function: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        Self { source: ".".to_owned(), program: Program::Function(Arc::new(function)) }
    }

    /// The program's text; `.` for a function.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// All results for `input`, in order. A program that does not end is ended.
    pub fn run(&self, input: Val) -> Result<Vec<Val>, JqError> {
        let compiled = match &self.program {
            Program::Jq(compiled) => compiled,
            Program::Function(function) => return call(&**function, &input).map(|result| vec![result]),
        };
        let ctx = Ctx::<Data>::new(&compiled.lut, Vars::new([]));
        let mut results = Vec::new();
        budget::begin();
        for result in compiled.id.run((ctx, input)) {
            match result {
                Ok(value) => results.push(value),
                // `halt` ends the program quietly; it must not end the operator.
                Err(exception) => match exception.get_err() {
                    Ok(error) => {
                        let ended = budget::exceeded().map(JqError::Ended);
                        return Err(ended.unwrap_or_else(|| JqError::Run(error.to_string())));
                    }
                    Err(_halt) => break,
                },
            }
        }
        budget::exceeded().map_or(Ok(results), |why| Err(JqError::Ended(why)))
    }

    /// The `filterResult` of a hook: `null` for no result, the value for one, an array for several.
    pub fn filter_result(&self, input: Val) -> Result<Vec<u8>, JqError> {
        let mut results = self.run(input)?;
        let value = match results.len() {
            0 => Val::Null,
            1 => results.remove(0),
            _ => results.into_iter().collect(),
        };
        Ok(json::to_vec(&value, Numbers::Float)?)
    }
}

/// The definitions of jaq and of this module in jq's own language.
fn jaq_defs<'s>() -> impl Iterator<Item = Def<&'s str>> {
    let parse = |text| jaq_core::load::parse(text, |parser| parser.defs()).expect("a constant that parses");
    let own = parse(functions::DEFINITIONS).into_iter().chain(parse(update::DEFINITIONS));
    let theirs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    // Of definitions with one name the last one counts.
    let all: Vec<Def<&'s str>> = theirs.chain(own).collect();
    all.into_iter()
}

impl fmt::Debug for Filter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Filter").field(&self.source).finish()
    }
}

impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        match (&self.program, &other.program) {
            (Program::Jq(_), Program::Jq(_)) => self.source == other.source,
            (Program::Function(one), Program::Function(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

fn call(function: &dyn Fn(&Value) -> Value, input: &Val) -> Result<Val, JqError> {
    let failed = |error: &dyn fmt::Display| JqError::Run(error.to_string());
    let text = json::to_vec(input, Numbers::Exact)?;
    let value = serde_json::from_slice(&text).map_err(|error| failed(&error))?;
    // A panic must not end the watch. The function cannot modify any data that is used after the panic.
    let result = catch_unwind(AssertUnwindSafe(|| function(&value)));
    let result =
        result.map_err(|panic| failed(&format!("the function panicked: {}", panic_text(&*panic))))?;
    json::parse(result.to_string().as_bytes()).map_err(|error| failed(&error))
}

fn panic_text(panic: &dyn Any) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref().copied()).unwrap_or_default()
}

fn load_error(errors: &jaq_core::load::Errors<&str, ()>) -> JqError {
    use jaq_core::load::Error;
    let mut texts = Vec::new();
    for (_, error) in errors {
        match error {
            Error::Io(problems) => texts.extend(problems.iter().map(|(path, why)| format!("{path}: {why}"))),
            Error::Lex(problems) => texts.extend(
                problems
                    .iter()
                    .map(|(expected, at)| format!("expected {} at `{}`", expected.as_str(), short(at))),
            ),
            Error::Parse(problems) => texts.extend(
                problems
                    .iter()
                    .map(|(expected, at)| format!("expected {} at `{}`", expected.as_str(), short(at))),
            ),
        }
    }
    JqError::Compile(texts.join("; "))
}

fn compile_error(errors: &jaq_core::compile::Errors<&str, ()>) -> JqError {
    let texts: Vec<String> = errors
        .iter()
        .flat_map(|(_, undefined)| undefined)
        .map(|(name, kind)| format!("undefined {}: {name}", kind.as_str()))
        .collect();
    JqError::Compile(texts.join("; "))
}

/// The place of an error, cut so that a long program does not fill the screen.
fn short(text: impl AsRef<str>) -> String {
    let text = text.as_ref();
    if text.is_empty() { "the end".to_owned() } else { text.chars().take(30).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(filter: &str, input: &str) -> Result<String, JqError> {
        let input = jaq_json::read::parse_single(input.as_bytes()).unwrap();
        Filter::compile(filter)?.filter_result(input).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn results() {
        for (case, filter, input, expected) in [
            ("one", ".data.k", r#"{"data":{"k":"v"}}"#, "\"v\""),
            ("missing", ".data.none", r#"{"data":{}}"#, "null"),
            ("empty", "empty", "{}", "null"),
            ("several", ".users[] | .name", r#"{"users":[{"name":"a"},{"name":"b"}]}"#, r#"["a","b"]"#),
            ("null_input", ".a", "null", "null"),
            ("environment", "env.HOME", "{}", "null"),
            ("environment_variable", "$ENV.HOME", "{}", "null"),
            ("halt", "1, halt, 2", "{}", "1"),
            ("definition", "def f: .a; f", r#"{"a":1}"#, "1"),
            ("comment", ".a # why", r#"{"a":1}"#, "1"),
            (
                "assign_through_null",
                ".metadata.labels.x = \"y\"",
                r#"{"metadata":{}}"#,
                r#"{"metadata":{"labels":{"x":"y"}}}"#,
            ),
            ("assign_several", ".a = (1, 2)", "null", r#"[{"a":1},{"a":2}]"#),
            ("assign_to_list", ".a[2] = 1", "{}", r#"{"a":[null,null,1]}"#),
            ("assign_uses_the_input", ".a = .b", r#"{"b":3}"#, r#"{"a":3,"b":3}"#),
            ("update", ".a[] |= . + 1", r#"{"a":[1,2]}"#, r#"{"a":[2,3]}"#),
            ("update_missing", ".a |= 5", "{}", r#"{"a":5}"#),
            ("update_empty", ".a[] |= select(. > 1)", r#"{"a":[1,2,0,3]}"#, r#"{"a":[2,3]}"#),
            ("add", ".n += 1", "{}", r#"{"n":1}"#),
            ("alternative", ".n //= 7 | .m //= 8", r#"{"m":1}"#, r#"{"m":1,"n":7}"#),
            ("slice", ".[1:3] = [9]", "[0,1,2,3]", "[0,9,3]"),
            (
                "slice_of_nothing",
                "[.a[:2], .b[.n:], .c[1:3][0], .b[1:][.m]?]",
                r#"{"b":"xyz","n":1}"#,
                r#"[null,"yz",null]"#,
            ),
            ("division_order", "[(6, 4) / (1, 2)]", "{}", "[6,4,3,2]"),
            ("deep_json", "try (\"[\" * 100000 | fromjson) catch \"no\"", "{}", "\"no\""),
            (
                "delete",
                "del(.metadata.annotations.x, .a[0,2])",
                r#"{"metadata":{},"a":[1,2,3]}"#,
                r#"{"a":[2],"metadata":{}}"#,
            ),
            ("delete_in_null", "del(.a.b)", "{}", "{}"),
            ("location", "1 |\n$__loc__", "{}", r#"{"file":"\u003ctop-level\u003e","line":2}"#),
            ("repeat", "[limit(3; 1 | repeat(. * 2))]", "{}", "[2,4,8]"),
            (
                "recurse",
                "[recurse], [recurse(.a; . != null)]",
                r#"{"a":{}}"#,
                r#"[[{"a":{}},{}],[{"a":{}},{}]]"#,
            ),
            (
                "paths_of_all",
                "[paths], [path(..)], [path(.a[])]",
                r#"{"a":[1]}"#,
                r#"[[["a"],["a",0]],[[],["a"],["a",0]],[["a",0]]]"#,
            ),
            ("range_down", "[range(3; 0; -2)], [range(0, 1; 2)]", "{}", "[[3,1],[0,1,1]]"),
            ("times", "\"ab\" * 2, 3 * 2, ({a: 1} * {b: 2})", "{}", r#"["abab",6,{"a":1,"b":2}]"#),
            ("times_in_order", "[(6, 4) * (1, 2)]", "{}", "[6,4,12,8]"),
            ("times_nothing", "\"ab\" * 0", "{}", "null"),
            ("join_null", r#"join("-")"#, r#"["a",null,1]"#, r#""a--1""#),
            (
                "numbers",
                "[1, 1.0, 1.50, 1e3, 1e17, 123456789012345678, 0.1, -0, 3.0e-7]",
                "{}",
                "[1,1,1.5,1000,100000000000000000,123456789012345680,0.1,0,3e-07]",
            ),
        ] {
            println!("case {case}");
            assert_eq!(apply(filter, input).unwrap(), expected, "{case}");
        }
    }

    #[test]
    fn bad_programs_do_not_compile() {
        for (case, filter) in [
            ("syntax", ".a["),
            ("unknown_function", "nope(1)"),
            ("no_inputs", "input"),
            ("two_programs", "1; def y: 2"),
            ("empty", ""),
        ] {
            assert!(matches!(Filter::compile(filter), Err(JqError::Compile(_))), "{case}");
        }
    }

    #[test]
    fn what_does_not_end_is_ended() {
        for (case, filter) in [
            ("recursion", "def f: f; f"),
            ("recursion_that_collects", "[def f: 1, f; f]"),
            ("deep_recursion", "def f: [f]; f"),
            ("deep_recursion_of_the_library", "def f: .[0] |= f; [[0]] | f"),
            ("range", "[range(1e18)]"),
            ("fold", "reduce range(1e18) as $i (0; . + $i)"),
            ("until", "until(false; .)"),
            ("while_loop", "last(while(true; .))"),
            ("repeat", "last(repeat(.))"),
            ("recurse", "last(recurse(.))"),
            ("product", "[range(400)] | [.[] + .[] + .[] + .[]] | length"),
            ("combinations", "[range(64) | [0, 1]] | last(combinations)"),
            ("every_level", "last(range(1e4) | {a: {b: {}}} | .. | .. | .. | .. | range(1000))"),
            ("string", "\"x\" * 1e12 | length"),
            ("list", ".[1e12] = 1 | length"),
            ("caught", "[try last(range(1e18)) catch 1, 2]"),
            ("caught_again_and_again", "def f: try error catch f; f"),
        ] {
            assert!(matches!(apply(filter, "null"), Err(JqError::Run(_) | JqError::Ended(_))), "{case}");
        }
    }

    #[test]
    fn a_filter_is_ended_for_one_object_only() {
        let filter = Filter::compile("[range(.)] | length").unwrap();
        let run = |n: usize| filter.filter_result(Val::from(n));
        let error = run(1_000_000_000).unwrap_err().to_string();
        assert!(error.starts_with("jqFilter failed: it did not end within "), "{error}");
        assert_eq!(run(1000), Ok(b"1000".to_vec()));
    }

    /// Only its author can end a function, so it runs to its end.
    #[test]
    fn what_bounds_programs_does_not_bound_functions() {
        assert!(apply("last(repeat(.))", "null").is_err());
        let function = Filter::function(|_| (1..=6_000_000_u64).filter(|n| n % 2 == 0).count().into());
        assert_eq!(function.filter_result(Val::Null), Ok(b"3000000".to_vec()));
        let panics = Filter::function(|_| panic!("no"));
        assert_eq!(
            panics.filter_result(Val::Null),
            Err(JqError::Run("the function panicked: no".to_owned()))
        );
    }

    #[test]
    fn an_error_while_running_is_reported() {
        assert_eq!(apply(r#"error("no")"#, "{}"), Err(JqError::Run("\"no\"".to_owned())));
    }
}
