//! jq filters, compiled once and run in the process by jaq.
//!
//! A filter sees neither the environment nor files nor further inputs: `env` is empty as in the original, and
//! `input` does not exist.

use std::fmt;

use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, data};
use jaq_json::{Map, Val};

use crate::json::{self, Numbers};

type Data = data::JustLut<Val>;

/// A compiled filter; cheap to share, safe to run from several threads at once.
pub struct Filter {
    source: String,
    compiled: jaq_core::Filter<Data>,
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
    /// The result has no JSON form.
    #[error("jqFilter result: {0}")]
    Result(#[from] json::WriteError),
}

impl Filter {
    /// Compiles `source`.
    pub fn compile(source: &str) -> Result<Self, JqError> {
        if source.trim().is_empty() {
            return Err(JqError::Compile("the filter is empty".to_owned()));
        }
        let prelude = jaq_core::load::parse("def env: {}; def halt: halt(0);", |parser| parser.defs())
            .expect("a constant that parses");
        let std_defs = jaq_std::defs().filter(|def| def.name != "halt");
        let loader = Loader::new(jaq_core::defs().chain(std_defs).chain(jaq_json::defs()).chain(prelude));
        let funs =
            jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs()).filter(|fun| fun.0 != "env");
        let arena = Arena::default();
        let modules =
            loader.load(&arena, File { code: source, path: () }).map_err(|errors| load_error(&errors))?;
        let compiled = Compiler::default()
            .with_global_vars(["$ENV"])
            .with_funs(funs)
            .compile(modules)
            .map_err(|errors| compile_error(&errors))?;
        Ok(Self { source: source.to_owned(), compiled })
    }

    /// The program's text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// All results for `input`, in order.
    pub fn run(&self, input: Val) -> Result<Vec<Val>, JqError> {
        let environment = Val::obj(Map::default());
        let ctx = Ctx::<Data>::new(&self.compiled.lut, Vars::new([environment]));
        let mut results = Vec::new();
        for result in self.compiled.id.run((ctx, input)) {
            match result {
                Ok(value) => results.push(value),
                // `halt` ends the program quietly; it must not end the operator.
                Err(exception) => match exception.get_err() {
                    Ok(error) => return Err(JqError::Run(error.to_string())),
                    Err(_halt) => break,
                },
            }
        }
        Ok(results)
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

impl fmt::Debug for Filter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Filter").field(&self.source).finish()
    }
}

impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
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
    use rstest::rstest;

    fn apply(filter: &str, input: &str) -> Result<String, JqError> {
        let input = jaq_json::read::parse_single(input.as_bytes()).unwrap();
        Filter::compile(filter)?.filter_result(input).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[rstest]
    #[case::one(".data.k", r#"{"data":{"k":"v"}}"#, "\"v\"")]
    #[case::missing(".data.none", r#"{"data":{}}"#, "null")]
    #[case::empty("empty", "{}", "null")]
    #[case::several(".users[] | .name", r#"{"users":[{"name":"a"},{"name":"b"}]}"#, r#"["a","b"]"#)]
    #[case::null_input(".a", "null", "null")]
    #[case::environment("env.HOME", "{}", "null")]
    #[case::environment_variable("$ENV.HOME", "{}", "null")]
    #[case::halt("1, halt, 2", "{}", "1")]
    #[case::numbers(
        "[1, 1.0, 1.50, 1e3, 1e17, 123456789012345678, 0.1, -0, 3.0e-7]",
        "{}",
        "[1,1,1.5,1000,100000000000000000,123456789012345680,0.1,0,3e-07]"
    )]
    fn results(#[case] filter: &str, #[case] input: &str, #[case] expected: &str) {
        assert_eq!(apply(filter, input).unwrap(), expected);
    }

    #[rstest]
    #[case::syntax(".a[")]
    #[case::unknown_function("nope(1)")]
    #[case::no_inputs("input")]
    #[case::empty("")]
    fn bad_programs_do_not_compile(#[case] filter: &str) {
        assert!(matches!(Filter::compile(filter), Err(JqError::Compile(_))));
    }

    #[test]
    fn an_error_while_running_is_reported() {
        assert_eq!(apply(r#"error("no")"#, "{}"), Err(JqError::Run("\"no\"".to_owned())));
    }
}
