//! Errors of planning and running.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// Why a task failed on a host, with all that a person needs to go on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Failure {
    /// The cause in one line.
    #[serde(rename = "message")]
    pub cause: String,
    /// What ran, without secrets.
    pub command: Option<String>,
    /// Its exit code.
    pub code: Option<i32>,
    /// Its last lines of standard error.
    pub stderr: Vec<String>,
    /// What to do.
    pub hint: Option<String>,
    /// Whether the same again may succeed.
    pub transient: bool,
    /// Whether the connection could not be made or was lost, so that nothing is known about what ran.
    #[serde(skip)]
    pub connection: bool,
}

impl Failure {
    /// A failure that will not pass by itself.
    pub fn new(cause: impl Into<String>) -> Self {
        Self { cause: cause.into(), ..Self::default() }
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Marks the failure as transient.
    #[must_use]
    pub fn transient(mut self) -> Self {
        self.transient = true;
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)
    }
}

impl std::error::Error for Failure {}

impl From<kk_connector::Error> for Failure {
    fn from(error: kk_connector::Error) -> Self {
        Self {
            cause: error.to_string(),
            hint: error.hint(),
            transient: error.is_transient(),
            connection: matches!(
                error,
                kk_connector::Error::Unreachable { .. } | kk_connector::Error::Lost { .. }
            ),
            ..Self::default()
        }
    }
}

/// A pipeline that cannot run: a bug in kk, found before any host was touched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// No task provides a slot that is needed.
    #[error("task {task} on {host} needs {slot}, which no task provides")]
    NoProvider {
        /// `module/task`.
        task: String,
        /// Host name.
        host: String,
        /// The slot.
        slot: String,
    },
    /// Two tasks fill the same slot.
    #[error("{slot} is provided twice: by {first} and by {second}")]
    TwoProviders {
        /// The slot.
        slot: String,
        /// `module/task on host`.
        first: String,
        /// `module/task on host`.
        second: String,
    },
    /// Tasks of the same turn describe it differently.
    #[error("task {task} describes the turn {key} differently from the tasks before it")]
    DifferentTurns {
        /// `module/task`.
        task: String,
        /// The turn's key.
        key: String,
    },
    /// Tasks wait for each other.
    #[error("these tasks wait for each other: {0}")]
    Cycle(String),
}
