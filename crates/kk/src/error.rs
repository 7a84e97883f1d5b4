//! The reasons for which commands fail. Each kind has its exit code.
//!
//! Messages are fragments without a full stop that fit after `error: `. The printer decides how they look.

use std::{io, path::Path};

use kk_cluster::BuildError;
use kk_config::{ConfigErrors, Diagnostic};
use kk_engine::{FailedTask, Failure, Problem, Warning};

use crate::exit::ExitStatus;
use crate::printer::text;

/// The reason why a command failed.
#[derive(Debug)]
pub enum Error {
    /// The command line is wrong.
    Usage {
        /// The error.
        message: String,
        /// What to write instead.
        hint: String,
    },
    /// The configuration is wrong.
    Config(ConfigErrors),
    /// Hosts are unreachable or give no root rights.
    Connection(Vec<HostFailure>),
    /// Hosts do not meet requirements. The table of findings was shown before.
    Precheck {
        /// Number of findings that are errors.
        errors: usize,
    },
    /// Hosts contain something that this command must not change.
    Refused {
        /// The obstacle, and the hosts on which it is.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
    /// Hosts did not answer; on all other hosts the command has done its work.
    Left(Vec<HostFailure>),
    /// Tasks failed.
    Tasks(Vec<HostFailure>),
    /// The user requested a stop.
    Cancelled {
        /// Whether hosts were changed before, or may have been changed because operations were interrupted.
        changed: bool,
        /// Failures before the stop, or because of it.
        failures: Vec<HostFailure>,
    },
    /// Parts of a bundle are unavailable, or a bundle cannot be used.
    Parts(Vec<Part>),
    /// Anything else: files on the control machine, bugs in kk.
    Other {
        /// The action that failed, to be read after "failed to …".
        doing: String,
        /// Why.
        cause: String,
        /// What to do.
        hint: Option<String>,
    },
}

/// The error of a part of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The error.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

/// What failed on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFailure {
    /// Host name.
    pub host: String,
    /// Title of the task: "Start etcd".
    pub title: String,
    /// Why.
    pub failure: Failure,
}

impl Error {
    /// A failure on the control machine.
    #[expect(clippy::needless_pass_by_value, reason = "callers do not need the error any more")]
    pub fn other(doing: impl Into<String>, cause: impl ToString) -> Self {
        Self::Other { doing: doing.into(), cause: cause.to_string(), hint: None }
    }

    /// The error for a file below `--workdir` that cannot be written.
    #[expect(clippy::needless_pass_by_value, reason = "callers do not need the error any more")]
    pub fn workdir(path: &Path, cause: io::Error) -> Self {
        Self::Other {
            doing: format!("write {}", path.display()),
            cause: cause.to_string(),
            hint: Some("specify a writable directory with --workdir".into()),
        }
    }

    /// A configuration error without a position in a file.
    pub fn config(message: impl Into<String>, hint: Option<String>) -> Self {
        let severity = kk_config::Severity::Error;
        let error = Diagnostic { severity, message: message.into(), hint, place: None };
        Self::Config(ConfigErrors { errors: vec![error], warnings: Vec::new() })
    }

    /// The exit code.
    pub fn status(&self) -> ExitStatus {
        match self {
            Self::Usage { .. } => ExitStatus::Usage,
            Self::Config(_) => ExitStatus::Config,
            Self::Connection(_) => ExitStatus::Connection,
            Self::Precheck { .. } | Self::Refused { .. } => ExitStatus::Precheck,
            Self::Left(_) => ExitStatus::Partly,
            Self::Tasks(_) | Self::Parts(_) | Self::Other { .. } => ExitStatus::Failed,
            Self::Cancelled { .. } => ExitStatus::Cancelled,
        }
    }

    /// Converts the error for a command that has begun to change hosts. Exit codes and messages that claim that nothing was
    /// changed would be wrong.
    #[must_use]
    pub fn after_changes(self) -> Self {
        match self {
            Self::Connection(failures) => Self::Tasks(failures),
            Self::Precheck { errors } => {
                Self::other("continue", format!("{} must be fixed first", text::count(errors, "problem")))
            }
            Self::Refused { message, hint } => Self::Other { doing: "continue".into(), cause: message, hint },
            Self::Cancelled { failures, .. } => Self::Cancelled { changed: true, failures },
            other => other,
        }
    }

    /// Each problem in the form for listeners and other programs.
    pub fn problems(&self) -> Vec<Problem> {
        let problem = |message: String, hint: Option<String>| Problem {
            exit_code: self.status().code(),
            message,
            hint,
            ..Problem::default()
        };
        let on_host = |failed: &HostFailure| Problem {
            task: Some(failed.task()),
            ..problem(failed.failure.cause.clone(), failed.failure.hint.clone())
        };
        match self {
            Self::Usage { message, hint } => vec![problem(message.clone(), Some(hint.clone()))],
            Self::Config(found) => {
                let in_file = |found: &Diagnostic| Problem {
                    place: place(found),
                    ..problem(found.message.clone(), found.hint.clone())
                };
                found.errors.iter().map(in_file).collect()
            }
            Self::Connection(failures) | Self::Left(failures) | Self::Tasks(failures) => {
                failures.iter().map(on_host).collect()
            }
            Self::Precheck { errors } => {
                vec![problem(format!("{} must be fixed first", text::count(*errors, "problem")), None)]
            }
            Self::Parts(parts) => {
                parts.iter().map(|part| problem(part.message.clone(), part.hint.clone())).collect()
            }
            Self::Refused { message, hint } => vec![problem(message.clone(), hint.clone())],
            Self::Cancelled { changed, failures } => {
                let said = if *changed { "cancelled" } else { "cancelled; nothing was changed" };
                failures.iter().map(on_host).chain([problem(said.into(), None)]).collect()
            }
            Self::Other { doing, cause, hint } => {
                vec![problem(format!("failed to {doing}: {cause}"), hint.clone())]
            }
        }
    }

    /// Warnings that were found in addition to the errors of a configuration.
    pub fn warnings(&self) -> Vec<Warning> {
        match self {
            Self::Config(found) => found.warnings.iter().map(warning).collect(),
            _ => Vec::new(),
        }
    }
}

impl HostFailure {
    fn task(&self) -> FailedTask {
        let Failure { command, code, stderr, .. } = &self.failure;
        FailedTask {
            host: self.host.clone(),
            title: self.title.clone(),
            command: command.clone(),
            code: *code,
            stderr: stderr.clone(),
        }
    }
}

/// Converts a warning of a configuration into an event.
pub fn warning(found: &Diagnostic) -> Warning {
    Warning { message: found.message.clone(), hint: found.hint.clone(), place: place(found) }
}

fn place(found: &Diagnostic) -> Option<kk_engine::Place> {
    found.place.as_ref().map(|place| kk_engine::Place {
        file: place.file.clone(),
        line: place.line,
        column: place.column,
        text: found.render(),
    })
}

impl From<BuildError> for Error {
    fn from(error: BuildError) -> Self {
        let (message, hint) = (error.to_string(), error.hint());
        match error {
            BuildError::Config { .. } => Self::config(message, hint),
            BuildError::Local { .. } | BuildError::Internal(_) => {
                Self::Other { doing: "plan".into(), cause: message, hint }
            }
            BuildError::Foreign { .. } => Self::Refused { message, hint },
        }
    }
}
