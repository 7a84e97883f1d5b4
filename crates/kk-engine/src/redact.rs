//! Removes secrets from all events, and makes their text safe to show.
//!
//! Some texts are from hosts, and a compromised host must not control the terminal on which they are shown. This is the only
//! place that escapes them, before any listener gets an event.
//!
//! Secrets are sent as files and never as text, so this is the second line of defence: a binary on a host may quote its own
//! configuration in an error.

use std::{
    borrow::Cow,
    sync::{Arc, PoisonError, RwLock},
};

use crate::{
    EventKind, FailedTask, Failure, Finding, Node, Outcome, Output, Place, PlannedTask, Problem, Summary,
    Warning, escape_controls,
};

/// Removing shorter texts would remove parts of ordinary words. `kk-config` warns about passwords that are shorter.
const SHORTEST: usize = 4;
/// Minimum length of the lines of a multi-line secret (a private key) that are removed individually.
const SHORTEST_LINE: usize = 16;

/// The secrets of a run. Clones share them: a secret that one of them learns is removed by all.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Sorted: a secret that contains another is replaced first, or its rest would remain.
    secrets: Arc<RwLock<Vec<String>>>,
}

impl Redactor {
    /// Takes the secrets. Secrets of fewer than four characters cannot be distinguished from ordinary text, and are ignored.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let redactor = Self::default();
        redactor.add(secrets);
        redactor
    }

    /// Takes more secrets, which are known only now: keys that the run creates, for example.
    pub fn add(&self, secrets: impl IntoIterator<Item = String>) {
        let mut all = self.secrets.write().unwrap_or_else(PoisonError::into_inner);
        for secret in secrets {
            let lines =
                secret.lines().filter(|line| line.len() >= SHORTEST_LINE && !line.starts_with("-----"));
            if secret.trim().contains('\n') {
                all.extend(lines.map(str::to_owned));
            }
            if secret.contains('\'') {
                all.push(secret.replace('\'', r"'\''"));
            }
            all.push(secret.trim().to_owned());
        }
        all.retain(|secret| secret.chars().count() >= SHORTEST);
        all.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        all.dedup();
    }

    /// The text with `***` in place of secrets, and with control characters escaped.
    pub fn text(&self, text: &str) -> String {
        let secrets = self.secrets.read().unwrap_or_else(PoisonError::into_inner);
        let mut redacted = text.to_owned();
        for secret in secrets.iter() {
            if redacted.contains(secret.as_str()) {
                redacted = redacted.replace(secret.as_str(), "***");
            }
        }
        match escape_controls(&redacted) {
            Cow::Borrowed(_) => redacted,
            Cow::Owned(escaped) => escaped,
        }
    }

    /// The failure without secrets.
    pub fn failure(&self, failure: &Failure) -> Failure {
        Failure {
            cause: self.text(&failure.cause),
            command: failure.command.as_deref().map(|text| self.text(text)),
            code: failure.code,
            stderr: self.lines(&failure.stderr),
            hint: failure.hint.as_deref().map(|text| self.text(text)),
            ..failure.clone()
        }
    }

    /// The event as listeners get it. Names of hosts, modules and tasks are from the Cluster file and from kk: they contain no
    /// secret and no control character.
    pub fn event(&self, kind: EventKind) -> EventKind {
        match kind {
            EventKind::Note { host, message } => EventKind::Note { host, message: self.text(&message) },
            EventKind::HostKeyLearnt { host, address, key_type, fingerprint } => {
                let key_type = self.text(&key_type);
                EventKind::HostKeyLearnt { host, address, key_type, fingerprint }
            }
            EventKind::Warning(Warning { message, hint, place }) => EventKind::Warning(Warning {
                message: self.text(&message),
                hint: self.optional(hint),
                place: self.place(place),
            }),
            EventKind::Finding(finding) => EventKind::Finding(Finding {
                message: self.text(&finding.message),
                hint: self.text(&finding.hint),
                ..finding
            }),
            EventKind::PlannedTask(task) => {
                EventKind::PlannedTask(PlannedTask { changes: self.lines(&task.changes), ..task })
            }
            EventKind::TaskFinished { host, module, task, title, outcome, took_ms } => {
                let outcome = self.outcome(outcome);
                EventKind::TaskFinished { host, module, task, title, outcome, took_ms }
            }
            EventKind::Error(problem) => EventKind::Error(self.problem(problem)),
            EventKind::Summary(summary) => EventKind::Summary(self.summary(summary)),
            other @ (EventKind::RunStarted { .. }
            | EventKind::Probed { .. }
            | EventKind::Planned { .. }
            | EventKind::TaskStarted { .. }
            | EventKind::Progress { .. }
            | EventKind::ModuleFinished { .. }
            | EventKind::Stopping { .. }
            | EventKind::RunFinished { .. }) => other,
        }
    }

    fn optional(&self, text: Option<String>) -> Option<String> {
        text.map(|text| self.text(&text))
    }

    fn lines(&self, lines: &[String]) -> Vec<String> {
        lines.iter().map(|line| self.text(line)).collect()
    }

    fn place(&self, place: Option<Place>) -> Option<Place> {
        place.map(|place| Place { text: self.text(&place.text), ..place })
    }

    fn problem(&self, problem: Problem) -> Problem {
        let task = problem.task.map(|task| FailedTask {
            command: self.optional(task.command),
            stderr: self.lines(&task.stderr),
            ..task
        });
        Problem {
            exit_code: problem.exit_code,
            message: self.text(&problem.message),
            hint: self.optional(problem.hint),
            place: self.place(problem.place),
            task,
        }
    }

    fn summary(&self, summary: Summary) -> Summary {
        let output = |Output { name, value }| Output { name, value: self.text(&value) };
        Summary {
            message: self.text(&summary.message),
            nodes: summary.nodes.into_iter().map(|node| self.node(node)).collect(),
            outputs: summary.outputs.into_iter().map(output).collect(),
            next: self.optional(summary.next),
        }
    }

    fn node(&self, node: Node) -> Node {
        let Node { name, address, roles } = node;
        Node { name: self.text(&name), address: self.text(&address), roles: self.lines(&roles) }
    }

    fn outcome(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Unchanged => Outcome::Unchanged,
            Outcome::Changed { changes } => Outcome::Changed { changes: self.lines(&changes) },
            Outcome::Retrying { failure, wait_ms } => {
                Outcome::Retrying { failure: self.failure(&failure), wait_ms }
            }
            Outcome::Failed { failure } => Outcome::Failed { failure: self.failure(&failure) },
            Outcome::Skipped { message } => Outcome::Skipped { message: self.text(&message) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_taken_out_whole_in_pieces_and_quoted() {
        let key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0\n-----END KEY-----\n";
        let redactor =
            Redactor::new(["hunter2".into(), "hunter22".into(), "it's me".into(), "abc".into(), key.into()]);
        for (text, clean) in [
            ("password hunter22 and hunter2", "password *** and ***"),
            (r"echo 'it'\''s me'", "echo '***'"),
            ("abc is too short", "abc is too short"),
            ("line MIIEvQIBADANBgkqhkiG9w0", "line ***"),
        ] {
            assert_eq!(redactor.text(text), clean);
        }
        assert_eq!(redactor.text(key), "***\n");
    }

    #[test]
    fn every_clone_removes_a_secret_that_is_learnt_later() {
        let redactor = Redactor::new(["hunter2".into()]);
        let clone = redactor.clone();
        redactor.add(["hunter22".into(), "hunter2".into()]);
        assert_eq!(clone.text("hunter22 and hunter2"), "*** and ***");
    }

    #[test]
    fn no_text_of_any_event_keeps_a_secret_or_controls_a_terminal() {
        let secret = || "it is \u{1b}[2Khunter2\u{202e}".to_owned();
        let place = || Some(Place { file: "f".into(), line: 1, column: 1, text: secret() });
        let failure = || Failure {
            cause: secret(),
            command: Some(secret()),
            code: None,
            stderr: vec![secret()],
            hint: Some(secret()),
            transient: false,
            ..Failure::default()
        };
        let finished = |outcome| EventKind::TaskFinished {
            host: "a".into(),
            module: "m".into(),
            task: "t".into(),
            title: "T".into(),
            outcome,
            took_ms: 0,
        };
        let task = FailedTask { command: Some(secret()), stderr: vec![secret()], ..FailedTask::default() };
        let events = [
            EventKind::Note { host: None, message: secret() },
            EventKind::HostKeyLearnt {
                host: "a".into(),
                address: "192.0.2.1:22".into(),
                key_type: secret(),
                fingerprint: "SHA256:x".into(),
            },
            EventKind::Warning(Warning { message: secret(), hint: Some(secret()), place: place() }),
            EventKind::Finding(Finding {
                severity: crate::Severity::Error,
                host: None,
                message: secret(),
                hint: secret(),
            }),
            EventKind::PlannedTask(PlannedTask {
                module: "m".into(),
                task: "t".into(),
                title: "T".into(),
                host: "a".into(),
                changes: vec![secret()],
            }),
            finished(Outcome::Changed { changes: vec![secret()] }),
            finished(Outcome::Retrying { failure: failure(), wait_ms: 1 }),
            finished(Outcome::Failed { failure: failure() }),
            finished(Outcome::Skipped { message: secret() }),
            EventKind::Error(Problem {
                exit_code: 1,
                message: secret(),
                hint: Some(secret()),
                place: place(),
                task: Some(task),
            }),
            EventKind::Summary(Summary {
                message: secret(),
                nodes: vec![Node { name: secret(), address: secret(), roles: vec![secret()] }],
                outputs: vec![Output { name: "API".into(), value: secret() }],
                next: Some(secret()),
            }),
        ];
        let redactor = Redactor::new(["hunter2".to_owned()]);
        for event in events {
            // The `Debug` form also contains fields that are not serialised.
            let shown = format!("{:?}", redactor.event(event));
            assert!(shown.contains("***") && !shown.contains("hunter2"), "{shown}");
            // The `Debug` form escapes, too: the backslash of text that is escaped already appears twice.
            let escaped = shown.matches(r"\\u{1b}[2K***\\u{202e}").count();
            assert!(escaped > 0 && escaped == shown.matches("***").count(), "{shown}");
        }
    }
}
