//! The log of a run: the output of the terminal and more, for people to read afterwards.

use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use kk_util::open_private;

use crate::{Event, EventKind, Failure, Finding, Listener, Outcome, Problem, Severity, Summary};

/// Writes `kk.log`: a line for each event except progress, and all details of a failure.
pub struct LogFile {
    path: PathBuf,
    file: File,
}

impl LogFile {
    /// A log in the directory of a run.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(run_directory: &Path) -> io::Result<Self> {
        let path = run_directory.join("kk.log");
        Ok(Self { file: open_private(&path)?, path })
    }

    /// The path of the log.
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

/// Formats milliseconds as seconds.
struct Seconds(u64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{}.{:03}", self.0 / 1000, self.0 % 1000))
    }
}

/// An event as text.
fn text_of(kind: &EventKind) -> Option<String> {
    Some(match kind {
        EventKind::RunStarted { command, hosts, time, .. } => {
            format!("{command} at {time} on {} hosts: {}", hosts.len(), hosts.join(", "))
        }
        EventKind::Warning(warning) => {
            let text = warning.place.as_ref().map_or(&warning.message, |place| &place.text);
            let text = text.strip_prefix("warning: ").unwrap_or(text);
            format!("warning: {text}{}", hint_text(warning.hint.as_ref().filter(|_| warning.place.is_none())))
        }
        EventKind::Note { host, message } => format!("{}note: {message}", of_host(host.as_deref())),
        EventKind::HostKeyLearnt { host, address, key_type, fingerprint } => {
            format!("{host}: new host key of {address}: {key_type} {fingerprint}")
        }
        EventKind::Probed { host } => format!("{host}: probed"),
        EventKind::Finding(finding) => finding_text(finding),
        EventKind::Planned { modules } => planned_text(modules),
        EventKind::PlannedTask(task) => {
            format!("{}: to do: {}: {}", task.host, task.title, task.changes.join("; "))
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
        EventKind::Stopping { at_once: false } => "stopping: waiting for running steps to end".into(),
        EventKind::Stopping { at_once: true } => "stopping at once".into(),
        EventKind::Error(problem) => problem_text(problem),
        EventKind::Summary(summary) => summary_text(summary),
        EventKind::RunFinished { exit_code, changed, round_trips, took_ms, .. } => {
            let trips: Vec<String> =
                round_trips.iter().map(|(host, trips)| format!("{host} {trips}")).collect();
            format!(
                "exit code {exit_code} after {} s: {changed} changes; round trips: {}",
                Seconds(*took_ms),
                trips.join(", ")
            )
        }
    })
}

/// `node1: `, or nothing for an event that concerns the cluster.
fn of_host(host: Option<&str>) -> String {
    host.map(|host| format!("{host}: ")).unwrap_or_default()
}

fn hint_text(hint: Option<&String>) -> String {
    hint.map(|hint| format!("\n    hint: {hint}")).unwrap_or_default()
}

fn finding_text(finding: &Finding) -> String {
    let Finding { severity, host, message, hint } = finding;
    let severity = match severity {
        Severity::Error => "ERROR",
        Severity::Warning => "warning",
        Severity::Adapted => "adapted",
    };
    format!("{}{severity}: {message}{}", of_host(host.as_deref()), hint_text(Some(hint)))
}

fn planned_text(modules: &[(String, usize)]) -> String {
    let counts: Vec<String> = modules.iter().map(|(module, count)| format!("{module} {count}")).collect();
    format!("to do: {}", if counts.is_empty() { "nothing".into() } else { counts.join(", ") })
}

/// The text of a problem. The details of a failed task are logged with its own event.
fn problem_text(problem: &Problem) -> String {
    let Problem { message, hint, place, task, .. } = problem;
    match (place, task) {
        (Some(place), _) => place.text.clone(),
        (None, Some(task)) => {
            format!("ERROR: {}: {}: {message}{}", task.host, task.title, hint_text(hint.as_ref()))
        }
        (None, None) => format!("ERROR: {message}{}", hint_text(hint.as_ref())),
    }
}

fn summary_text(summary: &Summary) -> String {
    let nodes = summary
        .nodes
        .iter()
        .map(|node| format!("\n    node {} {}: {}", node.name, node.address, node.roles.join(", ")));
    let outputs = summary.outputs.iter().map(|output| format!("\n    {}: {}", output.name, output.value));
    let next = summary.next.iter().map(|next| format!("\n    next: {next}"));
    nodes.chain(outputs).chain(next).fold(summary.message.clone(), |text, line| text + &line)
}

fn outcome_text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Unchanged => "nothing to do".into(),
        Outcome::Changed { changes } => format!("done ({})", changes.join("; ")),
        Outcome::Retrying { failure, wait_ms } => format!("{failure}; again in {} s", Seconds(*wait_ms)),
        Outcome::Failed { failure } => format!("FAILED: {failure}"),
        Outcome::Skipped { message } => format!("skipped, because {message}"),
    }
}

fn failure_of(outcome: &Outcome) -> Option<&Failure> {
    match outcome {
        Outcome::Failed { failure } | Outcome::Retrying { failure, .. } => Some(failure),
        _ => None,
    }
}

/// The details of a failure, each on a separate line.
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
    use crate::{Place, Warning};

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

    #[test]
    fn findings_warnings_and_problems_are_in_the_log() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = LogFile::create(directory.path()).unwrap();
        let place =
            Place { file: "c.yaml".into(), line: 1, column: 2, text: "warning: odd\n --> c.yaml:1:2".into() };
        for kind in [
            EventKind::Warning(Warning { message: "odd".into(), hint: None, place: Some(place) }),
            EventKind::Finding(Finding {
                severity: Severity::Error,
                host: Some("node1".into()),
                message: "too small".into(),
                hint: "grow it".into(),
            }),
            EventKind::Error(Problem {
                exit_code: 5,
                message: "1 problem must be fixed first".into(),
                ..Problem::default()
            }),
        ] {
            log.on_event(&Event { at_ms: 0, kind });
        }
        let text = std::fs::read_to_string(log.path()).unwrap();
        let wanted = "    0.000 warning: odd
    0.000  --> c.yaml:1:2
    0.000 node1: ERROR: too small
    0.000     hint: grow it
    0.000 ERROR: 1 problem must be fixed first
";
        assert_eq!(text, wanted);
    }
}
