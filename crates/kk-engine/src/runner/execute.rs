//! Carries out one leg of a lane: code of this machine, or scripts in one round trip.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kk_connector::{Command, Connection, Error, Output};
use tokio::{
    sync::mpsc::unbounded_channel,
    time::{Instant, sleep_until, timeout},
};

use super::{
    batch::{self, Batch, EndedOperation, Reader, Signal},
    leg::{Leg, Place},
    queue::Permit,
    shared::Shared,
};
use crate::{Context, Failure, Load, Run, Script, plan::Operation};

/// Time for a round trip beyond what its tasks may take: the connection may have to be dialled again.
const SLACK: Duration = Duration::from_mins(2);
/// Time that code gets to end by itself after it was told to.
const GRACE: Duration = Duration::from_secs(5);

/// Time between two messages about the bytes of a transfer.
const PROGRESS: Duration = Duration::from_millis(100);

/// Where a leg has led.
pub(super) enum Ended {
    /// To this place; everything before it is done.
    At(Place),
    /// To a failure at this place.
    Failed(Place, Failure),
}

/// Goes a leg from `place` on. `attempt` is that of the work there. The permit is given back at the end, or when only
/// a wait is left to run.
pub(super) async fn leg(
    shared: &Arc<Shared>,
    works: &[usize],
    place: Place,
    attempt: u32,
    leg: Leg,
    permit: Option<Permit>,
) -> Ended {
    match leg {
        Leg::Code(code) => {
            let ended = run_code(shared, works, place, attempt, code).await;
            drop(permit);
            ended
        }
        Leg::Scripts(scripts) => run_scripts(shared, works, attempt, &scripts, permit).await,
    }
}

/// The operation at `place` is done: so may its work be. Gives the next place.
fn done(shared: &Shared, works: &[usize], place: Place) -> Place {
    let index = works[place.work];
    let work = &shared.plan.works[index];
    shared.book.changed();
    if place.operation + 1 < work.operations.len() {
        return Place { operation: place.operation + 1, ..place };
    }
    shared.done(index);
    Place { work: place.work + 1, operation: 0 }
}

async fn run_code(
    shared: &Arc<Shared>,
    works: &[usize],
    place: Place,
    attempt: u32,
    code: Arc<dyn Run>,
) -> Ended {
    let index = works[place.work];
    let work = &shared.plan.works[index];
    let limit = shared.plan.steps[work.step].timeout;
    let deadline = Instant::from_std(shared.book.started(&shared.plan, index, attempt)) + limit;
    let cancel = shared.options.cancel.child_token();
    let context = Context {
        host: work.host.clone(),
        connection: shared.connection(&work.host),
        slots: shared.slots.clone(),
        cancel: cancel.clone(),
        progress: progress_of(shared.clone(), index),
        note: note_of(shared.clone(), index),
    };
    let mut running = code.run(context);
    let result = tokio::select! {
        biased;
        result = &mut running => result,
        () = shared.options.cancel.cancelled() => {
            let _ = timeout(GRACE, &mut running).await;
            Err(Error::Cancelled { host: work.host.clone() }.into())
        }
        () = sleep_until(deadline) => {
            cancel.cancel();
            let _ = timeout(GRACE, &mut running).await;
            Err(Error::Timeout { host: work.host.clone(), after: limit }.into())
        }
    };
    match result {
        Ok(()) => Ended::At(done(shared, works, place)),
        Err(mut failure) => {
            let said = format!("{}\n{}", failure.cause, failure.stderr.join("\n"));
            failure.hint = failure.hint.or_else(|| work.operations[place.operation].action.hint(&said));
            Ended::Failed(place, failure)
        }
    }
}

/// Tells the bytes of a transfer, ten times a second at most: a piece may be as small as a packet.
fn progress_of(shared: Arc<Shared>, index: usize) -> Arc<dyn Fn(u64, u64) + Send + Sync> {
    let told = Mutex::new(None::<Instant>);
    Arc::new(move |done, total| {
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        if done == total || told.is_none_or(|told| told.elapsed() >= PROGRESS) {
            *told = Some(Instant::now());
            shared.book.progress(&shared.plan, index, done, total);
        }
    })
}

fn note_of(shared: Arc<Shared>, index: usize) -> Arc<dyn Fn(String) + Send + Sync> {
    Arc::new(move |message| shared.book.note(&shared.plan.works[index].host, message))
}

async fn run_scripts(
    shared: &Arc<Shared>,
    works: &[usize],
    attempt: u32,
    scripts: &[(Place, Script)],
    permit: Option<Permit>,
) -> Ended {
    let work = &shared.plan.works[works[scripts[0].0.work]];
    let connection = shared.connection(&work.host);
    let batch = Batch::new(scripts.iter().map(|(place, script)| (script, load_at(shared, works, *place))));
    let (sender, mut lines) = unbounded_channel();
    let cancel = shared.options.cancel.child_token();
    let command = Command {
        script: batch.script.into(),
        files: batch.files,
        timeout: time_for(shared, works, scripts) + SLACK,
        cancel: cancel.clone(),
        lines: Some(sender),
    };
    let mut trip = Trip::new(shared, works, attempt, scripts, Reader::new(&batch.nonce));
    trip.permit = permit;
    let mut call = connection.run(command);
    let mut halted = Box::pin(shared.halted(&work.host));
    let (mut timed_out, mut stopping, mut told) = (false, false, false);
    let result = loop {
        tokio::select! {
            biased;
            Some(line) = lines.recv() => trip.hear(&line),
            result = &mut call => break result,
            () = until(trip.deadline), if !timed_out => {
                timed_out = true;
                cancel.cancel();
            }
            _ = &mut halted, if !stopping => stopping = true,
        }
        if (stopping || trip.failure.is_some()) && !told {
            told = trip.stop(&connection);
        }
    };
    while let Ok(line) = lines.try_recv() {
        trip.hear(&line);
    }
    trip.end(result, timed_out, stopping)
}

fn load_at(shared: &Shared, works: &[usize], place: Place) -> Load {
    shared.plan.works[works[place.work]].operations[place.operation].action.load()
}

/// The longest time that the tasks of these scripts may take together.
fn time_for(shared: &Shared, works: &[usize], scripts: &[(Place, Script)]) -> Duration {
    let mut positions: Vec<usize> = scripts.iter().map(|(place, _)| place.work).collect();
    positions.dedup();
    positions
        .into_iter()
        .map(|position| shared.plan.steps[shared.plan.works[works[position]].step].timeout)
        .sum()
}

/// Until the deadline; without one, for ever.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// One round trip with scripts, on its way.
struct Trip<'a> {
    shared: &'a Shared,
    works: &'a [usize],
    attempt: u32,
    scripts: &'a [(Place, Script)],
    reader: Reader,
    /// Where it runs on the host.
    directory: Option<String>,
    /// The first script that has not ended.
    next: usize,
    /// The place behind the last script that has ended.
    place: Place,
    /// When the running script's task has had its time.
    deadline: Option<Instant>,
    failure: Option<(Place, Failure)>,
    /// To work; a wait needs none.
    permit: Option<Permit>,
}

impl<'a> Trip<'a> {
    fn new(
        shared: &'a Shared,
        works: &'a [usize],
        attempt: u32,
        scripts: &'a [(Place, Script)],
        reader: Reader,
    ) -> Self {
        let place = scripts[0].0;
        Self {
            shared,
            works,
            attempt,
            scripts,
            reader,
            directory: None,
            next: 0,
            place,
            deadline: None,
            failure: None,
            permit: None,
        }
    }

    /// Takes a line of the driver.
    fn hear(&mut self, line: &str) {
        match self.reader.push(line) {
            Some(Signal::Directory(directory)) => self.directory = Some(directory),
            Some(Signal::Started(number)) if number == self.next => self.started(),
            Some(Signal::Ended(ended)) if ended.operation == self.next => self.ended(ended),
            _ => {}
        }
    }

    fn started(&mut self) {
        let Some((place, _)) = self.scripts.get(self.next) else { return };
        let index = self.works[place.work];
        let attempt = if place.work == self.scripts[0].0.work { self.attempt } else { 1 };
        let began = self.shared.book.started(&self.shared.plan, index, attempt);
        let limit = self.shared.plan.steps[self.shared.plan.works[index].step].timeout;
        self.deadline = Some(Instant::from_std(began) + limit);
        if load_at(self.shared, self.works, *place) == Load::Wait {
            self.permit = None;
        }
    }

    fn ended(&mut self, ended: EndedOperation) {
        let Some((place, script)) = self.scripts.get(self.next) else { return };
        self.deadline = None;
        let subject = self.shared.plan.works[self.works[place.work]].subject();
        for note in &ended.notes {
            self.shared.book.note(subject, note.clone());
        }
        if ended.code != 0 {
            self.failure = Some((*place, self.failure_of(*place, ended)));
            return;
        }
        let output = script.output.as_ref().map(|output| output(&ended.stdout, &self.shared.slots));
        if let Some(Err(failure)) = output {
            self.failure.get_or_insert((*place, failure));
        }
        if self.failure.is_none() {
            self.place = done(self.shared, self.works, *place);
            self.next += 1;
        }
    }

    fn failure_of(&self, place: Place, ended: EndedOperation) -> Failure {
        let EndedOperation { code, stderr, command, .. } = ended;
        let action = &self.operation(place).action;
        let text = stderr.join("\n");
        Failure {
            cause: headline(&stderr).unwrap_or_else(|| format!("it ended with code {code}")),
            command: command.or_else(|| self.command_at(place)),
            code: Some(code),
            hint: action.hint(&text),
            transient: action.transient(code, &text),
            stderr,
            ..Failure::default()
        }
    }

    fn operation(&self, place: Place) -> &Operation {
        &self.shared.plan.works[self.works[place.work]].operations[place.operation]
    }

    /// What people see of a script that does not say which of its commands failed: a single command as it is, otherwise
    /// what the script does.
    fn command_at(&self, place: Place) -> Option<String> {
        let (_, script) = self.scripts.iter().find(|(at, _)| *at == place)?;
        let lines = script.text.lines().map(str::trim);
        let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        match (lines.next(), lines.next()) {
            (Some(line), None) => Some(line.chars().take(300).collect()),
            _ => Some(self.operation(place).changes.join("; ")),
        }
    }

    /// Lets the running operation be the last: the driver looks for this file before each, and waits end by it. Gives
    /// whether the place for it was known.
    fn stop(&self, connection: &Arc<dyn Connection>) -> bool {
        let Some(directory) = self.directory.clone() else { return false };
        let connection = connection.clone();
        tokio::spawn(async move {
            let text = batch::stop(&directory);
            // When it comes too late, everything has ended anyway.
            let _ = connection.run(Command { timeout: SLACK, ..Command::new(text) }).await;
        });
        true
    }

    fn end(mut self, result: Result<Output, Error>, timed_out: bool, stopping: bool) -> Ended {
        if let Some((place, failure)) = self.failure {
            return Ended::Failed(place, failure);
        }
        let Some(&(place, _)) = self.scripts.get(self.next) else { return Ended::At(self.place) };
        let stderr = self.reader.stderr();
        let failure = match result {
            _ if timed_out => {
                let work = &self.shared.plan.works[self.works[place.work]];
                let after = self.shared.plan.steps[work.step].timeout;
                let hint = work.operations[place.operation].action.hint(&stderr.join("\n"));
                Failure { hint, ..Failure::from(Error::Timeout { host: work.host.clone(), after }) }
            }
            Ok(output) if output.code == 0 && stopping => return Ended::At(self.place),
            Ok(output) => Failure {
                code: Some(output.code),
                stderr: output.stderr.lines().map(str::to_owned).collect(),
                ..Failure::new("the script ended too early")
            },
            Err(error) => Failure::from(error),
        };
        self.started();
        let stderr = if stderr.is_empty() { failure.stderr.clone() } else { stderr };
        Ended::Failed(place, Failure { command: self.command_at(place), stderr, ..failure })
    }
}

/// Lines that end an error without saying what is wrong: kubeadm's and cobra's advice, the end of a `kubectl describe`.
const NO_CAUSE: [&str; 3] = ["To see the stack trace", "Tolerations:", "Events:"];

/// The line of standard error that says most: the last that begins with "error", or else the last that says anything.
fn headline(stderr: &[String]) -> Option<String> {
    let is_error = |line: &&String| line.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("error"));
    let says =
        |line: &&String| !line.starts_with(' ') && !NO_CAUSE.iter().any(|start| line.starts_with(start));
    let mut lines = stderr.iter().rev();
    let line = lines.clone().find(is_error).or_else(|| lines.clone().find(says)).or_else(|| lines.next());
    line.map(|line| line.trim().to_owned())
}
