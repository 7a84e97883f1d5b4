//! A run without hosts: its events, from the first to the last.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use kk_config::Secret;
use kk_engine::{CONTROL, Event, EventKind, Outcome, Redactor, Summary};
use time::OffsetDateTime;

use crate::error::Error;
use crate::exit::ExitStatus;
use crate::printer::Printer;

use super::super::run::timestamp;

/// A run on the control machine only.
pub(super) struct LocalRun<'a> {
    printer: &'a Printer,
    module: &'static str,
    began: Instant,
    /// Whether bytes were transferred: if the run fails after that, it has changed something.
    moved: AtomicBool,
    /// Removes secrets from the events, and escapes control characters in texts of registries and bundles.
    redactor: Redactor,
}

/// One step of the run.
#[derive(Clone, Copy)]
pub(super) struct Step {
    name: &'static str,
    title: &'static str,
    began: Instant,
}

impl<'a> LocalRun<'a> {
    /// No event shows one of the secrets.
    pub(super) fn start(
        command: &str,
        module: &'static str,
        printer: &'a Printer,
        secrets: &[Secret],
    ) -> Self {
        let (began, moved, redactor) = (Instant::now(), AtomicBool::new(false), Redactor::default());
        let run = Self { printer, module, began, moved, redactor };
        run.hide(secrets);
        let time = timestamp(OffsetDateTime::now_utc());
        run.send(EventKind::RunStarted { command: command.into(), hosts: Vec::new(), time, dry_run: false });
        run
    }

    /// Adds secrets that no event may show.
    pub(super) fn hide(&self, secrets: &[Secret]) {
        self.redactor.add(secrets.iter().map(|secret| secret.expose().to_owned()));
    }

    pub(super) fn send(&self, kind: EventKind) {
        self.printer.event(&Event { at_ms: since(self.began), kind: self.redactor.event(kind) });
    }

    pub(super) fn note(&self, message: String) {
        self.send(EventKind::Note { host: None, message });
    }

    pub(super) fn begin(&self, name: &'static str, title: &'static str) -> Step {
        let (host, module) = (CONTROL.to_owned(), self.module.to_owned());
        self.send(EventKind::TaskStarted {
            host,
            module,
            task: name.into(),
            title: title.into(),
            attempt: 1,
        });
        Step { name, title, began: Instant::now() }
    }

    pub(super) fn progress(&self, step: Step, done: u64, total: u64) {
        self.moved.fetch_or(done > 0, Ordering::Relaxed);
        let (host, module) = (CONTROL.to_owned(), self.module.to_owned());
        self.send(EventKind::Progress { host, module, task: step.name.into(), done, total });
    }

    pub(super) fn end(&self, step: Step, change: String) {
        self.finish_step(step, Outcome::Changed { changes: vec![change] });
    }

    /// Ends a step that had nothing to do.
    pub(super) fn end_unchanged(&self, step: Step) {
        self.finish_step(step, Outcome::Unchanged);
    }

    fn finish_step(&self, step: Step, outcome: Outcome) {
        self.send(EventKind::TaskFinished {
            host: CONTROL.to_owned(),
            module: self.module.to_owned(),
            task: step.name.into(),
            title: step.title.into(),
            outcome,
            took_ms: since(step.began),
        });
    }

    /// Reports how the run ended, and how many changes it made.
    pub(super) fn finish(self, result: Result<Summary, Error>, changed: usize) -> Result<ExitStatus, Error> {
        let status = result.as_ref().map_or_else(Error::status, |_| ExitStatus::Ok);
        match result {
            Ok(summary) => self.send(EventKind::Summary(summary)),
            Err(error) => {
                for problem in error.problems() {
                    self.send(EventKind::Error(problem));
                }
            }
        }
        self.send(EventKind::RunFinished {
            ok: status == ExitStatus::Ok,
            exit_code: status.code(),
            changed: if status == ExitStatus::Ok { changed } else { self.changed_in_part(changed) },
            round_trips: BTreeMap::new(),
            log: None,
            took_ms: since(self.began),
        });
        self.printer.check_output()?;
        Ok(status)
    }

    /// The changes of a run that failed.
    fn changed_in_part(&self, changed: usize) -> usize {
        changed.max(self.moved.load(Ordering::Relaxed).into())
    }
}

fn since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_fails_after_its_first_byte_has_changed_something() {
        let printer = Printer::plain();
        let run = LocalRun::start("artifact images push", "images", &printer, &[]);
        let step = run.begin("push", "Push images");
        run.progress(step, 0, 10);
        assert_eq!(run.changed_in_part(0), 0);
        run.progress(step, 3, 10);
        assert_eq!((run.changed_in_part(0), run.changed_in_part(2)), (1, 2));
    }
}
