//! The common part of all commands that work on hosts: from their first event to their exit code.
//!
//! [`Run`] owns the events of the command, its records on the control machine and its reaction to signals.

mod lock;
mod records;
#[cfg(test)]
mod tests;
mod trace;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use kk_cluster::{BuildError, Probed, Session, Settings};
use kk_connector::{Connection, LearntKey};
use kk_engine::{
    EventKind, EventSender, Failure, Finding, Options, Output, Owner, Plan, PlannedTask, Report, Severity,
    Summary, TaskFailure, Warning, events, listen,
};
use time::OffsetDateTime;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::args::{HostKeyChecking, RunOptions};
use crate::cancel::Cancel;
use crate::error::{self, Error, HostFailure};
use crate::exit::ExitStatus;
use crate::printer::{Printer, errors::CONNECT, plan};

use super::load::Input;
use records::Records;
pub(super) use records::timestamp;
use trace::Trace;

type Connections = BTreeMap<String, Arc<dyn Connection>>;

/// A command that works on hosts. It may run several plans.
pub(super) struct Run<'a> {
    printer: &'a Printer,
    options: &'a RunOptions,
    cancel: Cancel,
    events: EventSender,
    listening: JoinHandle<()>,
    connections: Connections,
    owner: Owner,
    /// Whether it has several plans, and keeps the locks on hosts between them.
    rounds: bool,
    /// The hosts whose locks it keeps.
    held: BTreeSet<String>,
    /// Operations that changed something.
    changed: usize,
    /// Whether a host may have been changed: an operation that changes something has begun.
    begun: bool,
    /// Values of tasks for the summary, by name.
    outputs: BTreeMap<String, String>,
    /// The directory of the run. Absent for a dry run.
    directory: Option<PathBuf>,
    trace: Option<Trace>,
    _lock: Option<lock::Lock>,
}

/// The warning about host keys that are not checked.
pub(super) fn unchecked_keys(checking: HostKeyChecking) -> Option<Warning> {
    (checking == HostKeyChecking::Off).then(|| Warning {
        message: "host keys are not checked: another machine that answers at the address of a host receives \
                  its passwords, keys and certificates"
            .into(),
        hint: Some("use --host-key-checking accept-new, or set hostKey of each host in the file".into()),
        place: None,
    })
}

/// A learnt key as an event.
pub(super) fn learnt(key: LearntKey) -> EventKind {
    let LearntKey { host, address, kind: key_type, fingerprint } = key;
    EventKind::HostKeyLearnt { host, address, key_type, fingerprint }
}

/// The session settings from the options of every run. A command adds its own.
pub(super) fn settings(options: &RunOptions) -> Settings {
    Settings {
        workdir: options.workdir.clone(),
        templates: None,
        host_keys: options.host_key_checking.into(),
        options: kk_cluster::Options::default(),
    }
}

impl<'a> Run<'a> {
    /// If a confirmation is needed and no user can answer, refuses before anything else is checked.
    pub(super) fn check_consent(options: &RunOptions, printer: &Printer) -> Result<(), Error> {
        if options.yes || options.dry_run || printer.can_ask() {
            return Ok(());
        }
        Err(Error::Usage {
            message: "cannot ask for confirmation: there is no terminal, or the output is JSON".into(),
            hint: "add --yes to continue without confirmation, or --dry-run to show what would be \
                   done"
                .into(),
        })
    }

    /// Opens the session and the records of the run, and starts to listen to signals.
    pub(super) fn start(
        command: &str,
        input: Input,
        settings: Settings,
        options: &'a RunOptions,
        printer: &'a Printer,
    ) -> Result<(Session, Self), Error> {
        let Input { spec, warnings } = input;
        let started = Session::open(spec, settings).map_err(Error::from).and_then(|session| {
            let run = Self::open(command, &session, options, printer)?;
            Ok((session, run))
        });
        if started.is_err() {
            for warning in &warnings {
                printer.warning(error::warning(warning));
            }
        }
        let (session, run) = started?;
        for warning in &warnings {
            run.events.send(EventKind::Warning(error::warning(warning)));
        }
        if let Some(warning) = unchecked_keys(options.host_key_checking) {
            run.events.send(EventKind::Warning(warning));
        }
        Ok((session, run))
    }

    fn open(
        command: &str,
        session: &Session,
        options: &'a RunOptions,
        printer: &'a Printer,
    ) -> Result<Self, Error> {
        let cancel = Cancel::on_signals().map_err(|error| Error::other("listen to signals", error))?;
        let time = OffsetDateTime::now_utc();
        let redactor = session.redactor().clone();
        let records = if options.dry_run {
            Records::default()
        } else {
            Records::create(&session.directory(), command, time, options.debug, &redactor)?
        };
        let Records { directory, listeners, trace, lock } = records;
        let (events, receiver) = events(redactor);
        let mut all: Vec<Box<dyn kk_engine::Listener>> = vec![Box::new(printer.clone())];
        all.extend(listeners);
        let listening = tokio::spawn(listen(receiver, all));
        events.send(EventKind::RunStarted {
            command: command.to_owned(),
            hosts: session.spec().hosts.iter().map(|host| host.name.clone()).collect(),
            time: records::timestamp(time),
            dry_run: options.dry_run,
        });
        Ok(Self {
            printer,
            options,
            cancel,
            events,
            listening,
            connections: session.connections().clone(),
            owner: session.owner().clone(),
            rounds: false,
            held: BTreeSet::new(),
            changed: 0,
            begun: false,
            outputs: BTreeMap::new(),
            directory,
            trace,
            _lock: lock,
        })
    }

    /// Declares that several plans follow: no other control machine can take over a host between them, unless nothing is done
    /// there for two minutes.
    pub(super) fn expect_rounds(&mut self) {
        self.rounds = true;
    }

    /// Fires when the user requests a stop. Work that changes nothing has nothing to clean up.
    pub(super) fn stop_token(&self) -> &CancellationToken {
        &self.cancel.tidy
    }

    /// Runs work that changes nothing and that ends at once when the user requests a stop. A host that is being probed notices
    /// the end of the connection.
    pub(super) async fn unless_stopped<T>(
        &self,
        work: impl Future<Output = Result<T, BuildError>>,
    ) -> Result<T, Error> {
        let result = tokio::select! {
            biased;
            () = self.cancel.tidy.cancelled() => Err(self.cancelled()),
            result = work => result.map_err(Error::from),
        };
        self.announce_keys();
        result
    }

    /// Reports the hosts that are trusted on first use, so that the user can compare the fingerprints.
    fn announce_keys(&self) {
        for key in self.connections.values().flat_map(|connection| connection.learnt()) {
            self.events.send(learnt(key));
        }
    }

    fn cancelled(&self) -> Error {
        Error::Cancelled { changed: self.begun, failures: Vec::new() }
    }

    /// The facts of a host are known.
    pub(super) fn host_probed(&self, host: &str) {
        self.events.send(EventKind::Probed { host: host.to_owned() });
    }

    /// A message that belongs to no task.
    pub(super) fn note(&self, message: &str) {
        self.events.send(EventKind::Note { host: None, message: message.to_owned() });
    }

    /// Reports findings; if there are errors, they end the command.
    pub(super) fn report_findings(&self, list: &[Finding]) -> Result<(), Error> {
        for finding in list {
            self.events.send(EventKind::Finding(finding.clone()));
        }
        match list.iter().filter(|finding| finding.severity == Severity::Error).count() {
            0 => Ok(()),
            errors => Err(Error::Precheck { errors }),
        }
    }

    /// Reports the plan, task by task. Returns the tasks with changes.
    pub(super) fn report_plan(&self, plan: &Plan) -> Vec<PlannedTask> {
        self.events.send(EventKind::Planned { modules: plan.modules() });
        let tasks = plan.changes();
        for task in &tasks {
            self.events.send(EventKind::PlannedTask(task.clone()));
        }
        tasks
    }

    /// Whether the plan is only shown.
    pub(super) fn is_dry_run(&self) -> bool {
        self.options.dry_run
    }

    /// Asks for confirmation: without it, nothing is changed.
    pub(super) async fn confirm(&self, question: &str, tasks: &[PlannedTask]) -> Result<bool, Error> {
        if self.options.yes || tasks.is_empty() {
            return Ok(true);
        }
        // The findings must be displayed above the question.
        self.events.flush().await;
        let (printer, question) =
            (self.printer.clone(), format!("{} to make. {question}", plan::total(tasks)));
        let answer = tokio::task::spawn_blocking(move || printer.confirm(&question));
        let agreed = tokio::select! {
            biased;
            () = self.cancel.tidy.cancelled() => return Err(self.cancelled()),
            answer = answer => answer.map_err(|error| Error::other("ask on the terminal", error))??,
        };
        if !agreed {
            self.note(if self.begun {
                "the answer was no; no more changes are made"
            } else {
                "the answer was no; nothing was changed"
            });
        }
        Ok(agreed)
    }

    /// Executes a plan.
    pub(super) async fn execute(&mut self, plan: Plan) -> Result<(), Error> {
        self.execute_until(self.cancel.tidy.clone(), plan).await
    }

    /// Executes a plan that reverts the changes of another plan. It runs even if the user has requested a stop, but not if the
    /// run must end at once.
    pub(super) async fn take_back(&mut self, plan: Plan) -> Result<(), Error> {
        self.execute_until(self.cancel.at_once.clone(), plan).await
    }

    async fn execute_until(&mut self, stop: CancellationToken, plan: Plan) -> Result<(), Error> {
        let defaults = Options::default();
        let options = Options {
            owner: Some(self.owner.clone()),
            more: self.rounds,
            ignore_err: self.options.ignore_err,
            forks: self.options.forks.unwrap_or(defaults.forks),
            upload_forks: self.options.upload_forks.unwrap_or(defaults.upload_forks),
            stop,
            cancel: self.cancel.at_once.clone(),
            ..defaults
        };
        if self.rounds {
            self.held.extend(plan.hosts());
        }
        let report = kk_engine::run(plan, self.traced_connections(), options, self.events.clone()).await;
        self.changed += report.changed;
        self.begun |= report.begun;
        self.outputs.extend(report.outputs.clone());
        verdict(report, self.begun)
    }

    fn traced_connections(&self) -> Connections {
        let Some(trace) = &self.trace else { return self.connections.clone() };
        let traced = |connection: &Arc<dyn Connection>| trace.connection(connection.clone());
        self.connections.iter().map(|(host, connection)| (host.clone(), traced(connection))).collect()
    }

    /// Reports how the command ended, and waits until all listeners have handled it.
    pub(super) async fn finish(
        mut self,
        result: Result<Option<Summary>, Error>,
    ) -> Result<ExitStatus, Error> {
        self.announce_keys();
        // Regardless of the result. After a second Ctrl-C, work on the hosts may still be ending.
        if !self.cancel.at_once.is_cancelled() {
            let hosts = self.held.iter().filter_map(|host| self.connections.get(host)).cloned();
            kk_engine::release(&self.owner, hosts).await;
        }
        // If an earlier round has changed something, an error of a later round must not claim that nothing was changed.
        let result = result.map_err(|error| if self.begun { error.after_changes() } else { error });
        let status = result.as_ref().map_or_else(Error::status, |_| ExitStatus::Ok);
        match result {
            Ok(None) => {}
            Ok(Some(mut summary)) => {
                let left = std::mem::take(&mut self.outputs).into_iter();
                summary.outputs.extend(left.map(|(name, value)| Output { name, value }));
                self.events.send(EventKind::Summary(summary));
            }
            Err(error) => {
                for warning in error.warnings() {
                    self.events.send(EventKind::Warning(warning));
                }
                for problem in error.problems() {
                    self.events.send(EventKind::Error(problem));
                }
            }
        }
        let trips = |(host, connection): (&String, &Arc<dyn Connection>)| {
            (host.clone(), connection.stats().round_trips)
        };
        self.events.send(EventKind::RunFinished {
            ok: status == ExitStatus::Ok,
            exit_code: status.code(),
            changed: self.changed,
            round_trips: self.connections.iter().map(trips).collect(),
            log: self.directory.as_ref().map(|directory| directory.display().to_string()),
            took_ms: self.events.elapsed_ms(),
        });
        drop(self.events);
        // A listener that panicked has handled what it could; the panic was shown.
        let _ = self.listening.await;
        self.printer.check_output()?;
        Ok(status)
    }
}

/// The answers of the hosts. If no host answered, the command cannot continue.
pub(super) fn any_answered(probed: Probed) -> Result<Probed, Error> {
    if probed.facts.is_empty() { Err(Error::Connection(unreached(&probed.failures))) } else { Ok(probed) }
}

/// Ends a command whose plan needs hosts that did not answer.
pub(super) fn refuse_without(needed: &BTreeMap<String, Failure>) -> Result<(), Error> {
    if needed.is_empty() { Ok(()) } else { Err(Error::Connection(unreached(needed))) }
}

/// Ends a command that has done its work on all hosts except those that did not answer.
pub(super) fn name_left(probed: &Probed) -> Result<(), Error> {
    let mut left = unreached(&probed.failures);
    for host in &mut left {
        let hint = host.failure.hint.iter().map(String::as_str);
        let again = "it is not changed: run again when it answers";
        host.failure.hint = Some(hint.chain([again]).collect::<Vec<_>>().join("; "));
    }
    if left.is_empty() { Ok(()) } else { Err(Error::Left(left)) }
}

fn unreached(failures: &BTreeMap<String, Failure>) -> Vec<HostFailure> {
    let failed = |(host, failure): (&String, &Failure)| HostFailure {
        host: host.clone(),
        title: CONNECT.into(),
        failure: failure.clone(),
    };
    failures.iter().map(failed).collect()
}

/// The result of the command from the report of a plan. `begun`: this plan, or an earlier one, has begun to change something.
fn verdict(report: Report, begun: bool) -> Result<(), Error> {
    let failed =
        |task: TaskFailure| HostFailure { host: task.host, title: task.title, failure: task.failure };
    let failures: Vec<HostFailure> = report.failures.into_iter().map(failed).collect();
    if report.ok && failures.is_empty() {
        return Ok(());
    }
    if report.stopped {
        return Err(Error::Cancelled { changed: begun, failures });
    }
    Err(Error::Tasks(failures))
}
