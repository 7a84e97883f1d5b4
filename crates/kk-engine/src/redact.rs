//! Takes secrets out of whatever a run says.
//!
//! Secrets travel as files and never as text, so this is the second line: a program on a host that quotes its own
//! configuration in an error.

use crate::{EventKind, Failure, Outcome};

/// Shorter texts would take away parts of ordinary words.
const SHORTEST: usize = 4;
/// Lines of a secret of several lines (a private key) that are taken out one by one.
const SHORTEST_LINE: usize = 16;

/// The secrets of a run.
#[derive(Clone, Default)]
pub struct Redactor {
    secrets: Vec<String>,
}

impl Redactor {
    /// Takes the secrets. Those of fewer than four characters cannot be told from ordinary text, and are left.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut all = Vec::new();
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
        // A secret that contains another goes first, or its rest would stay.
        all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        all.dedup();
        Self { secrets: all }
    }

    /// The text with `***` in place of secrets.
    pub fn text(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "***"))
    }

    /// The failure without secrets.
    pub fn failure(&self, failure: &Failure) -> Failure {
        Failure {
            cause: self.text(&failure.cause),
            command: failure.command.as_deref().map(|text| self.text(text)),
            code: failure.code,
            stderr: failure.stderr.iter().map(|line| self.text(line)).collect(),
            hint: failure.hint.as_deref().map(|text| self.text(text)),
            transient: failure.transient,
        }
    }

    /// The event without secrets.
    pub(crate) fn event(&self, kind: EventKind) -> EventKind {
        match kind {
            EventKind::Note { host, text } => EventKind::Note { host, text: self.text(&text) },
            EventKind::TaskFinished { host, module, task, title, outcome, took_ms } => {
                let outcome = self.outcome(outcome);
                EventKind::TaskFinished { host, module, task, title, outcome, took_ms }
            }
            other => other,
        }
    }

    fn outcome(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Unchanged => Outcome::Unchanged,
            Outcome::Changed { changes } => {
                Outcome::Changed { changes: changes.iter().map(|line| self.text(line)).collect() }
            }
            Outcome::Retrying { failure, wait_ms } => {
                Outcome::Retrying { failure: self.failure(&failure), wait_ms }
            }
            Outcome::Failed { failure } => Outcome::Failed { failure: self.failure(&failure) },
            Outcome::Skipped { reason } => Outcome::Skipped { reason: self.text(&reason) },
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
}
