//! What all commands that work on hosts have in common: who listens, when to ask, when to stop, and how a run ends.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use kk_cluster::{BuildError, Finding, Probed, Session};
use kk_connector::Connection;
use kk_engine::{
    Event, EventKind, EventSender, Facts, Failure, Journal, Listener, LogFile, Options, Plan, PlannedTask,
    Redactor, Report, create_run_directory, events, listen,
};
use time::{OffsetDateTime, format_description::BorrowedFormatItem, macros::format_description};
use tokio::{sync::oneshot, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::args::RunOptions;
use crate::cancel::Cancel;
use crate::error::{Error, HostFailure};
use crate::printer::{Printer, findings, plan};

use super::{lock::Lock, trace::Trace};

/// Time of each module in milliseconds, in the order in which they ended.
type Times = Vec<(String, u64)>;

/// A command that works on hosts, from its first event to its last.
pub(super) struct Run<'a> {
    printer: &'a Printer,
    options: &'a RunOptions,
    cancel: Cancel,
    events: EventSender,
    listening: JoinHandle<()>,
    /// Told when all listeners have heard of the plan.
    plan_heard: Option<oneshot::Receiver<()>>,
    times: Arc<Mutex<Times>>,
    /// The directory of the run. Absent for a dry run.
    log: Option<PathBuf>,
    /// With `--debug`.
    trace: Option<Trace>,
    /// Absent for a dry run.
    _lock: Option<Lock>,
}

/// What a run leaves on this machine: a directory with journal and log.
struct Records {
    lock: Lock,
    directory: PathBuf,
    listeners: Vec<Box<dyn Listener>>,
    trace: Option<Trace>,
}

impl Records {
    /// `<folder>/runs/<time>-<command>/`.
    fn create(
        folder: &Path,
        command: &str,
        time: OffsetDateTime,
        debug: bool,
        redactor: &Redactor,
    ) -> Result<Self, Error> {
        let lock = Lock::take(folder)?;
        let time = formatted(time, format_description!("[year][month][day]-[hour][minute][second]"));
        let directory = folder.join("runs").join(format!("{time}-{}", command.replace(' ', "-")));
        let failed = |error| Error::workdir(&directory, error);
        create_run_directory(&directory).map_err(failed)?;
        let journal = Journal::create(&directory).map_err(failed)?;
        let log = LogFile::create(&directory).map_err(failed)?;
        let trace = debug.then(|| Trace::create(&directory, redactor.clone())).transpose().map_err(failed)?;
        Ok(Self { lock, listeners: vec![Box::new(journal), Box::new(log)], trace, directory })
    }
}

/// A run that ended well.
pub(super) struct Done {
    pub(super) report: Report,
    /// From the first event, in milliseconds.
    pub(super) took_ms: u64,
    /// The directory of the run.
    pub(super) log: Option<PathBuf>,
}

impl<'a> Run<'a> {
    /// A question that nobody could answer is an error before anything else is looked at.
    pub(super) fn may_ask(options: &RunOptions, printer: &Printer) -> Result<(), Error> {
        if options.yes || options.dry_run || printer.can_ask() {
            return Ok(());
        }
        Err(Error::Usage {
            message: "nobody can be asked for consent: there is no terminal, or the output is for programs"
                .into(),
            hint: "add --yes to go on without asking, or --dry-run to see what would be done".into(),
        })
    }

    /// Begins to listen: to signals, and to what happens.
    pub(super) fn begin(
        command: &str,
        session: &Session,
        options: &'a RunOptions,
        printer: &'a Printer,
    ) -> Result<Self, Error> {
        let cancel = Cancel::on_signals().map_err(|error| Error::other("listen to signals", error))?;
        let time = OffsetDateTime::now_utc();
        let secrets = session.secrets();
        let redactor = Redactor::new(secrets.iter().map(|secret| secret.expose().to_owned()));
        let records = if options.dry_run {
            None
        } else {
            Some(Records::create(&session.folder(), command, time, options.debug, &redactor)?)
        };
        let (events, receiver) = events(redactor);
        let (heard, plan_heard) = oneshot::channel();
        let times = Arc::default();
        let mut listeners: Vec<Box<dyn Listener>> = vec![Box::new(printer.clone())];
        let (lock, log, trace) = records.map_or((None, None, None), |records| {
            listeners.extend(records.listeners);
            (Some(records.lock), Some(records.directory), records.trace)
        });
        listeners.push(Box::new(Last { plan: Some(heard), times: Arc::clone(&times) }));
        let listening = tokio::spawn(listen(receiver, listeners));
        events.send(EventKind::RunStarted {
            command: command.to_owned(),
            hosts: session.spec().hosts.iter().map(|host| host.name.clone()).collect(),
            time: formatted(time, format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z")),
        });
        let plan_heard = Some(plan_heard);
        Ok(Self { printer, options, cancel, events, listening, plan_heard, times, log, trace, _lock: lock })
    }

    /// Fires when the person asks to stop. As long as nothing was changed there is nothing to tidy up.
    pub(super) fn stop(&self) -> &CancellationToken {
        &self.cancel.tidy
    }

    /// Work that changes nothing and ends at once when the person asks to stop. A host that is asked for facts
    /// notices by the connection.
    pub(super) async fn unless_stopped<T>(
        &self,
        work: impl Future<Output = Result<T, BuildError>>,
    ) -> Result<T, Error> {
        tokio::select! {
            biased;
            () = self.cancel.tidy.cancelled() => Err(Error::Cancelled { changed: false, log: None }),
            result = work => Ok(result?),
        }
    }

    /// A host has told what it is.
    pub(super) fn answered(&self, host: &str) {
        self.events.send(EventKind::Probed { host: host.to_owned() });
    }

    /// Something to say that belongs to no task.
    pub(super) fn note(&self, text: &str) {
        self.events.send(EventKind::Note { host: None, text: text.to_owned() });
    }

    /// Tells the size of the plan, and waits until everybody has heard it: what is printed next comes after it.
    pub(super) async fn planned(&mut self, plan: &Plan) {
        self.events.send(EventKind::Planned { modules: plan.modules() });
        if let Some(heard) = self.plan_heard.take() {
            // A listener that panicked does not hear it; the panic has been shown.
            let _ = heard.await;
        }
    }

    /// Shows what was noticed about the hosts; errors among it end the command.
    pub(super) fn check(&self, list: &[Finding]) -> Result<(), Error> {
        self.printer.findings(list);
        match findings::errors(list) {
            0 => Ok(()),
            errors => Err(Error::Precheck { errors }),
        }
    }

    /// With `--dry-run` shows the plan, and says that this was all there is to do.
    pub(super) fn only_shows(&self, tasks: &[PlannedTask]) -> Result<bool, Error> {
        if self.options.dry_run {
            self.printer.plan(tasks)?;
        }
        Ok(self.options.dry_run)
    }

    /// Whether to make the changes: nothing is done without consent.
    pub(super) async fn agree(&self, question: &str, tasks: &[PlannedTask]) -> Result<bool, Error> {
        if self.options.yes || tasks.is_empty() {
            return Ok(true);
        }
        let (printer, question) =
            (self.printer.clone(), format!("{} to make. {question}", plan::total(tasks)));
        let answer = tokio::task::spawn_blocking(move || printer.confirm(&question));
        let agreed = tokio::select! {
            biased;
            () = self.cancel.tidy.cancelled() => return Err(Error::Cancelled { changed: false, log: None }),
            answer = answer => answer.map_err(|error| Error::other("ask on the terminal", error))??,
        };
        if !agreed {
            self.printer.message("nothing was changed");
        }
        Ok(agreed)
    }

    /// Makes the changes.
    pub(super) async fn go(
        &self,
        plan: Plan,
        connections: &BTreeMap<String, Arc<dyn Connection>>,
    ) -> Result<Done, Error> {
        let defaults = Options::default();
        let options = Options {
            ignore_err: self.options.ignore_err,
            forks: self.options.forks.unwrap_or(defaults.forks),
            upload_forks: self.options.upload_forks.unwrap_or(defaults.upload_forks),
            stop: self.cancel.tidy.clone(),
            cancel: self.cancel.at_once.clone(),
        };
        let report = kk_engine::run(plan, self.traced(connections), options, self.events.clone()).await;
        ended(report, self.events.elapsed_ms(), self.log.clone())
    }

    fn traced(
        &self,
        connections: &BTreeMap<String, Arc<dyn Connection>>,
    ) -> BTreeMap<String, Arc<dyn Connection>> {
        let Some(trace) = &self.trace else { return connections.clone() };
        connections
            .iter()
            .map(|(host, connection)| (host.clone(), trace.connection(connection.clone())))
            .collect()
    }

    /// Waits until everybody has heard everything. Gives the time of each module.
    pub(super) async fn end(self) -> Times {
        drop(self.events);
        // A listener that panicked has heard all it could; the panic has been shown.
        let _ = self.listening.await;
        std::mem::take(&mut *self.times.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The facts of all hosts, or all reasons why there are none.
pub(super) fn facts(probed: Probed) -> Result<BTreeMap<String, Facts>, Error> {
    probed.map_err(|failures| {
        let failed =
            |(host, failure): (String, Failure)| HostFailure { host, title: "Connect".into(), failure };
        Error::Connection(failures.into_iter().map(failed).collect())
    })
}

/// What a report means for the person.
fn ended(report: Report, took_ms: u64, log: Option<PathBuf>) -> Result<Done, Error> {
    if report.stopped && !report.ok {
        return Err(Error::Cancelled { changed: report.changed > 0, log });
    }
    if !report.ok || !report.failures.is_empty() {
        let failed = |task: kk_engine::TaskFailure| HostFailure {
            host: task.host,
            title: task.title,
            failure: task.failure,
        };
        return Err(Error::Tasks { failures: report.failures.into_iter().map(failed).collect(), log });
    }
    Ok(Done { report, took_ms, log })
}

/// The last listener: when it has heard something, so have all the others.
struct Last {
    plan: Option<oneshot::Sender<()>>,
    times: Arc<Mutex<Times>>,
}

impl Listener for Last {
    fn on_event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Planned { .. } => {
                // Nobody waits any more when the command has ended.
                let _ = self.plan.take().map(|heard| heard.send(()));
            }
            EventKind::ModuleFinished { module, took_ms } => {
                self.times.lock().unwrap_or_else(PoisonError::into_inner).push((module.clone(), *took_ms));
            }
            _ => {}
        }
    }
}

fn formatted(time: OffsetDateTime, format: &[BorrowedFormatItem<'_>]) -> String {
    time.format(format).expect("the formats here ask for nothing that a UTC time lacks")
}
