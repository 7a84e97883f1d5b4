//! Evaluates conditions in definitions: expressions of the template language, such as `spec.monitoring.enabled`.

use minijinja::{Environment, UndefinedBehavior, Value};
use serde::{Deserialize, Deserializer, de::Error};

/// Value of `enabled` for a component that exists only for its dependents; `when needed or …` if the spec can also enable it.
pub const WHEN_NEEDED: &str = "when needed";

/// A condition. Undefined values count as false.
#[derive(Debug, Clone)]
pub struct Expression(String);

impl Expression {
    /// Whether the condition is true for these values.
    pub fn holds(&self, context: &Value) -> Result<bool, String> {
        let Some(text) = self.text() else { return Ok(false) };
        let environment = environment();
        let expression = environment.compile_expression(text).map_err(|error| self.wrong(&error))?;
        Ok(expression.eval(context).map_err(|error| self.wrong(&error))?.is_true())
    }

    /// Whether the condition begins with [`WHEN_NEEDED`].
    pub fn is_when_needed(&self) -> bool {
        self.0.starts_with(WHEN_NEEDED)
    }

    /// The expression without [`WHEN_NEEDED`].
    fn text(&self) -> Option<&str> {
        match self.0.strip_prefix(WHEN_NEEDED) {
            None => Some(&self.0),
            Some(rest) => rest.strip_prefix(" or "),
        }
    }

    /// Whether the condition contains the path of a value.
    pub fn mentions(&self, path: &str) -> bool {
        let is_end =
            |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric() || "._".contains(next));
        self.0.match_indices(path).any(|(at, found)| is_end(&self.0[at + found.len()..]))
    }

    fn wrong(&self, error: &minijinja::Error) -> String {
        format!("the condition '{}' cannot be used: {error}", self.0)
    }
}

impl<'de> Deserialize<'de> for Expression {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expression = Self(String::deserialize(deserializer)?);
        let text = match expression.text() {
            Some(text) => text,
            None if expression.0 == WHEN_NEEDED => return Ok(expression),
            None => &expression.0,
        };
        environment().compile_expression(text).map_err(|error| D::Error::custom(expression.wrong(&error)))?;
        Ok(expression)
    }
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment
}
