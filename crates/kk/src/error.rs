//! Why a command ended badly, in the form in which the person at the terminal reads it.
//!
//! Messages are fragments without a full stop that fit after `error: `. Each kind has its exit code.

use std::{
    io,
    path::{Path, PathBuf},
};

use kk_cluster::BuildError;
use kk_config::{ConfigErrors, Diagnostic};
use kk_engine::Failure;

use crate::exit::ExitStatus;
use crate::printer::{Paint, text};

/// Why a command ended badly.
#[derive(Debug)]
pub enum Error {
    /// The command line cannot be followed.
    Usage {
        /// What is wrong.
        message: String,
        /// What to write instead.
        hint: String,
    },
    /// The configuration is wrong.
    Config(ConfigErrors),
    /// Hosts cannot be reached or give no root rights.
    Connection(Vec<HostFailure>),
    /// Hosts do not meet requirements. The table of findings was shown before.
    Precheck {
        /// Number of findings that are errors.
        errors: usize,
    },
    /// Tasks failed.
    Tasks {
        /// Each task and host.
        failures: Vec<HostFailure>,
        /// The directory of the run with log and journal.
        log: Option<PathBuf>,
    },
    /// The person asked to stop.
    Cancelled {
        /// Whether hosts may have been changed before.
        changed: bool,
        /// The directory of the run with log and journal.
        log: Option<PathBuf>,
    },
    /// Anything else: files of this machine, mistakes in this program.
    Other {
        /// What could not be done, fit for "failed to …".
        doing: String,
        /// Why.
        cause: String,
        /// What to do.
        hint: Option<String>,
    },
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
    /// A failure on this machine.
    #[expect(clippy::needless_pass_by_value, reason = "who calls this needs the error no more")]
    pub fn other(doing: impl Into<String>, cause: impl ToString) -> Self {
        Self::Other { doing: doing.into(), cause: cause.to_string(), hint: None }
    }

    /// Something below `--workdir` that cannot be written.
    #[expect(clippy::needless_pass_by_value, reason = "who calls this needs the error no more")]
    pub fn workdir(path: &Path, cause: io::Error) -> Self {
        Self::Other {
            doing: format!("write {}", path.display()),
            cause: cause.to_string(),
            hint: Some("name a directory that you may write to with --workdir".into()),
        }
    }

    /// A configuration error that has no place in a file.
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
            Self::Precheck { .. } => ExitStatus::Precheck,
            Self::Tasks { .. } | Self::Other { .. } => ExitStatus::Failed,
            Self::Cancelled { .. } => ExitStatus::Cancelled,
        }
    }

    /// All lines of the message.
    pub fn render(&self, paint: Paint) -> String {
        match self {
            Self::Usage { message, hint } => block(paint, message, &[], Some(hint)),
            Self::Config(errors) => config(paint, errors),
            Self::Connection(failures) => {
                let nothing = "nothing was changed on any host\n";
                format!("{}\n{nothing}", failed_hosts(paint, failures, |_| "connect to".into()))
            }
            Self::Precheck { errors } => {
                let message = format!("{} must be solved first", text::count(*errors, "problem"));
                format!("{}\nnothing was changed on any host\n", block(paint, &message, &[], None))
            }
            Self::Tasks { failures, log } => {
                let on = |title: &str| format!("{} on", text::in_sentence(title));
                let mut out = failed_hosts(paint, failures, on);
                out += "\n";
                out += &log_line(log.as_deref());
                out + "running the same command again goes on where it stopped\n"
            }
            Self::Cancelled { changed: false, log } => {
                format!(
                    "{}{}",
                    block(paint, "cancelled; nothing was changed", &[], None),
                    log_line(log.as_deref())
                )
            }
            Self::Cancelled { changed: true, log } => {
                let message = block(paint, "cancelled", &[], None);
                let again = "running the same command again goes on where it stopped\n";
                format!("{message}{}{again}", log_line(log.as_deref()))
            }
            Self::Other { doing, cause, hint } => {
                block(paint, &format!("failed to {doing}: {cause}"), &[], hint.as_deref())
            }
        }
    }
}

impl From<BuildError> for Error {
    /// What stands in the way of a plan is on this machine: the file, or what it names.
    fn from(error: BuildError) -> Self {
        Self::config(error.what, error.hint)
    }
}

fn log_line(log: Option<&Path>) -> String {
    log.map_or_else(String::new, |path| format!("log: {}\n", path.display()))
}

fn block(paint: Paint, message: &str, details: &[String], hint: Option<&str>) -> String {
    let mut out = format!("{} {message}\n", paint.red("error:"));
    for detail in details {
        out += &text::indent(detail, 2);
    }
    if let Some(hint) = hint {
        out += &format!("  {} {hint}\n", paint.cyan("hint:"));
    }
    out
}

fn config(paint: Paint, errors: &ConfigErrors) -> String {
    let mut out = String::new();
    for finding in errors.warnings.iter().chain(&errors.errors) {
        out += &format!("{}\n\n", diagnostic(paint, finding));
    }
    out + &format!(
        "{} in the configuration; no host was contacted\n",
        text::count(errors.errors.len(), "error")
    )
}

/// A finding in a configuration, its first word in colour.
pub fn diagnostic(paint: Paint, finding: &Diagnostic) -> String {
    let plain = finding.render();
    let (word, rest) = plain.split_once(' ').unwrap_or((&plain, ""));
    let word = match finding.severity {
        kk_config::Severity::Error => paint.red(word),
        kk_config::Severity::Warning => paint.yellow(word),
    };
    format!("{word} {rest}")
}

/// One block for each failure; hosts that failed in the same way share one.
/// `doing` says what failed, fit for "failed to … node1".
fn failed_hosts(paint: Paint, failures: &[HostFailure], doing: impl Fn(&str) -> String) -> String {
    let same = |a: &HostFailure, b: &HostFailure| a.title == b.title && a.failure == b.failure;
    let blocks: Vec<String> = text::fold(failures, |failure| &failure.host, same)
        .into_iter()
        .map(|(first, hosts)| {
            let (doing, hosts) = (doing(&first.title), text::names(&hosts, 8));
            let message = format!("failed to {doing} {hosts}: {}", first.failure.cause);
            block(paint, &message, &details(paint, &first.failure), first.failure.hint.as_deref())
        })
        .collect();
    blocks.join("\n")
}

fn details(paint: Paint, failure: &Failure) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(command) = &failure.command {
        lines.push(format!("{} {command}", paint.dim("command:")));
    }
    if let Some(code) = failure.code {
        lines.push(format!("{} {code}", paint.dim("exit code:")));
    }
    if !failure.stderr.is_empty() {
        lines.push(paint.dim("last lines of stderr:"));
        lines.extend(failure.stderr.iter().map(|line| format!("  {line}")));
    }
    lines
}
