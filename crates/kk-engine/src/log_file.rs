//! The log of a run: what the terminal shows and more, for a person to read afterwards.

use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use crate::{Event, EventKind, Failure, Listener, Outcome, journal::create_private};

/// Writes `kk.log`: a line for each event but progress, and all of a failure.
pub struct LogFile {
    path: PathBuf,
    file: File,
}

impl LogFile {
    /// A log in the directory of a run.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(run_directory: &Path) -> io::Result<Self> {
        let path = run_directory.join("kk.log");
        Ok(Self { file: create_private(&path)?, path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Listener for LogFile {
    fn on_event(&mut self, event: &Event) {
        if let Some(text) = text_of(&event.kind) {
            let seconds = Seconds(event.at_ms);
            for line in text.lines() {
                // A log that cannot be written does not end a run.
                let _ = writeln!(self.file, "{seconds:>9} {line}");
            }
        }
    }
}

/// Milliseconds, shown as seconds.
struct Seconds(u64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{}.{:03}", self.0 / 1000, self.0 % 1000))
    }
}

/// What a person reads of an event.
fn text_of(kind: &EventKind) -> Option<String> {
    Some(match kind {
        EventKind::RunStarted { command, hosts, time } => {
            format!("{command} at {time} on {} hosts: {}", hosts.len(), hosts.join(", "))
        }
        EventKind::Note { host, text } => match host {
            Some(host) => format!("{host}: note: {text}"),
            None => format!("note: {text}"),
        },
        EventKind::Probed { host } => format!("{host}: looked at"),
        EventKind::Planned { modules } => {
            let counts: Vec<String> =
                modules.iter().map(|(module, count)| format!("{module} {count}")).collect();
            format!("to do: {}", if counts.is_empty() { "nothing".into() } else { counts.join(", ") })
        }
        EventKind::TaskStarted { host, module, task, title, attempt } => match attempt {
            1 => format!("{host}: {title} ({module}/{task})"),
            _ => format!("{host}: {title} ({module}/{task}), attempt {attempt}"),
        },
        EventKind::Progress { .. } => return None,
        EventKind::TaskFinished { host, title, outcome, took_ms, .. } => {
            format!("{host}: {title}: {} ({} s)", outcome_text(outcome), Seconds(*took_ms))
                + &failure_of(outcome).map(failure_text).unwrap_or_default()
        }
        EventKind::ModuleFinished { module, took_ms } => format!("{module}: done in {} s", Seconds(*took_ms)),
        EventKind::Stopping { at_once: false } => "stopping: what runs comes to its end".into(),
        EventKind::Stopping { at_once: true } => "stopping at once".into(),
        EventKind::RunFinished { ok, changed, round_trips, took_ms } => {
            let trips: Vec<String> =
                round_trips.iter().map(|(host, trips)| format!("{host} {trips}")).collect();
            let end = if *ok { "done" } else { "not done" };
            format!("{end} in {} s: {changed} changes; round trips: {}", Seconds(*took_ms), trips.join(", "))
        }
    })
}

fn outcome_text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Unchanged => "nothing to do".into(),
        Outcome::Changed { changes } => format!("done ({})", changes.join("; ")),
        Outcome::Retrying { failure, wait_ms } => format!("{failure}; again in {} s", Seconds(*wait_ms)),
        Outcome::Failed { failure } => format!("FAILED: {failure}"),
        Outcome::Skipped { reason } => format!("skipped, because {reason}"),
    }
}

fn failure_of(outcome: &Outcome) -> Option<&Failure> {
    match outcome {
        Outcome::Failed { failure } | Outcome::Retrying { failure, .. } => Some(failure),
        _ => None,
    }
}

/// The details of a failure, each on a line of its own.
fn failure_text(failure: &Failure) -> String {
    let command = failure.command.iter().map(|command| format!("command: {command}"));
    let code = failure.code.iter().map(|code| format!("exit code: {code}"));
    let stderr = failure.stderr.iter().map(|line| format!("stderr: {line}"));
    let hint = failure.hint.iter().map(|hint| format!("hint: {hint}"));
    command.chain(code).chain(stderr).chain(hint).fold(String::new(), |text, line| text + "\n    " + &line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_written_with_everything_that_is_known() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = LogFile::create(directory.path()).unwrap();
        let failure = Failure {
            command: Some("kk_unit etcd.service yes start".into()),
            code: Some(1),
            stderr: vec!["bind: address already in use".into()],
            ..Failure::new("etcd did not start").hint("free the port")
        };
        log.on_event(&Event {
            at_ms: 61_005,
            kind: EventKind::TaskFinished {
                host: "node1".into(),
                module: "etcd".into(),
                task: "start".into(),
                title: "Start etcd".into(),
                outcome: Outcome::Failed { failure },
                took_ms: 1500,
            },
        });
        let text = std::fs::read_to_string(log.path()).unwrap();
        let wanted = "   61.005 node1: Start etcd: FAILED: etcd did not start (1.500 s)
   61.005     command: kk_unit etcd.service yes start
   61.005     exit code: 1
   61.005     stderr: bind: address already in use
   61.005     hint: free the port
";
        assert_eq!(text, wanted);
    }
}
