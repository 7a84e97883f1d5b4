//! Executes the selected work of a lane: code of the control machine, or scripts in one round trip.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kk_connector::{Command, Connection, Error, Output};
use tokio::{
    sync::mpsc::channel,
    time::{Instant, sleep_until, timeout},
};

use super::{
    batch::{self, Batch, EndedOperation, Reader, Signal},
    host_lock,
    queue::Permit,
    select::{Position, Selected},
    shared::Shared,
};
use crate::{Context, Failure, Load, Run, Script, plan::Operation};

/// Time for a round trip beyond the time limits of its tasks: the connection may have to be dialled again.
const SLACK: Duration = Duration::from_mins(2);
/// Time for code to end by itself after it was cancelled.
const GRACE: Duration = Duration::from_secs(5);
/// Bytes to keep of the driver's output: each line is handled when it arrives.
const KEEP: usize = 64 << 10;
/// Minimum time between two progress messages of a transfer.
const PROGRESS: Duration = Duration::from_millis(100);

/// How far the execution got.
pub(super) enum Ended {
    /// Everything before this position is done.
    At(Position),
    /// The operation at this position failed; everything before it is done.
    Failed(Position, Failure),
}

/// Executes the work that was selected at `position`. `attempt` is the attempt of the work at that position. The permit is
/// returned at the end. It is returned earlier when only a wait is left to run, or when all bytes of a transfer are sent.
pub(super) async fn execute(
    shared: &Arc<Shared>,
    works: &[usize],
    position: Position,
    attempt: u32,
    selected: Selected,
    permit: Option<Permit>,
) -> Ended {
    match selected {
        Selected::Code(code) => run_code(shared, works, position, attempt, code, permit).await,
        Selected::Scripts(scripts) => run_scripts(shared, works, attempt, &scripts, permit).await,
    }
}

/// Records that the operation at `position` is done, and its work after the last operation. Returns the next position.
fn done(shared: &Shared, works: &[usize], position: Position) -> Position {
    let index = works[position.work];
    let work = &shared.plan.works[index];
    if work.operations[position.operation].action.is_change() {
        shared.tracker.changed();
    }
    if position.operation + 1 < work.operations.len() {
        return Position { operation: position.operation + 1, ..position };
    }
    shared.done(index);
    Position { work: position.work + 1, operation: 0 }
}

async fn run_code(
    shared: &Arc<Shared>,
    works: &[usize],
    position: Position,
    attempt: u32,
    code: Arc<dyn Run>,
    permit: Option<Permit>,
) -> Ended {
    let index = works[position.work];
    let work = &shared.plan.works[index];
    let limit = shared.plan.steps[work.step].timeout;
    let deadline = Instant::from_std(shared.tracker.started(&shared.plan, index, attempt)) + limit;
    shared.tracker.begun(&shared.plan, index, position.operation);
    let cancel = shared.options.cancel.child_token();
    // The permit limits transfers: the host's work on the last file does not slow down other transfers.
    let permit = Arc::new(Mutex::new(permit));
    let give_back = {
        let (permit, transfers) = (Arc::clone(&permit), code.transfers());
        move || {
            if transfers {
                drop(permit.lock().unwrap_or_else(PoisonError::into_inner).take());
            }
        }
    };
    let context = Context {
        host: work.host.clone(),
        connection: shared.connection_for_code(index, position.operation),
        slots: shared.slots.clone(),
        cancel: cancel.clone(),
        progress: progress_of(shared.clone(), index, give_back),
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
    drop(permit.lock().unwrap_or_else(PoisonError::into_inner).take());
    match result {
        Ok(()) => Ended::At(done(shared, works, position)),
        Err(mut failure) => {
            let said = format!("{}\n{}", failure.cause, failure.stderr.join("\n"));
            // Only uploads take the lock, before everything else, and code that makes an upload changes its host in no other way.
            if host_lock::is_refusal(&said) {
                shared.tracker.refused(&shared.plan, index, position.operation);
            }
            let action = &work.operations[position.operation].action;
            failure.hint = failure.hint.or_else(|| action.hint(&said)).or_else(|| host_lock::hint(&said));
            Ended::Failed(position, failure)
        }
    }
}

/// Reports the bytes of a transfer, at most ten times a second: a piece may be as small as a packet. `all_sent` is called when
/// all bytes are sent.
fn progress_of(
    shared: Arc<Shared>,
    index: usize,
    all_sent: impl Fn() + Send + Sync + 'static,
) -> Arc<dyn Fn(u64, u64) + Send + Sync> {
    let reported = Mutex::new(None::<Instant>);
    Arc::new(move |done, total| {
        if done == total {
            all_sent();
        }
        let mut reported = reported.lock().unwrap_or_else(PoisonError::into_inner);
        if done == total || reported.is_none_or(|at| at.elapsed() >= PROGRESS) {
            *reported = Some(Instant::now());
            shared.tracker.progress(&shared.plan, index, done, total);
        }
    })
}

fn note_of(shared: Arc<Shared>, index: usize) -> Arc<dyn Fn(String) + Send + Sync> {
    Arc::new(move |message| shared.tracker.note(&shared.plan.works[index].host, message))
}

async fn run_scripts(
    shared: &Arc<Shared>,
    works: &[usize],
    attempt: u32,
    scripts: &[(Position, Script)],
    permit: Option<Permit>,
) -> Ended {
    let work = &shared.plan.works[works[scripts[0].0.work]];
    let connection = shared.connection(&work.host);
    let loads = scripts.iter().map(|(position, script)| (script, load_at(shared, works, *position)));
    let batch = Batch::new(loads, shared.options.owner.as_ref(), is_last(shared, works, scripts));
    let (sender, mut lines) = channel(Command::LINES);
    let cancel = shared.options.cancel.child_token();
    let command = Command {
        script: batch.script.into(),
        files: batch.files,
        timeout: time_for(shared, works, scripts) + SLACK,
        cancel: cancel.clone(),
        lines: Some(sender),
        keep: KEEP,
        whole: false,
    };
    let mut round_trip = RoundTrip::new(shared, works, attempt, scripts, Reader::new(&batch.nonce));
    round_trip.permit = permit;
    let mut call = connection.run(command);
    let mut halted = Box::pin(shared.halted(&work.host));
    let (mut timed_out, mut stopping, mut stop_sent) = (false, false, false);
    let result = loop {
        tokio::select! {
            biased;
            // First, so that a host that prints without end cannot prevent the run from ending its script.
            () = until(round_trip.deadline), if !timed_out => {
                // Lines that were sent in time may not have been read yet.
                for _ in 0..Command::LINES {
                    let Ok(line) = lines.try_recv() else { break };
                    round_trip.on_line(&line);
                }
                timed_out = round_trip.deadline.is_some_and(|deadline| deadline <= Instant::now());
                if timed_out {
                    cancel.cancel();
                }
            }
            _ = &mut halted, if !stopping => stopping = true,
            Some(line) = lines.recv() => round_trip.on_line(&line),
            result = &mut call => break result,
        }
        if (stopping || round_trip.failure.is_some()) && !stop_sent {
            stop_sent = round_trip.stop(&connection);
        }
    };
    while let Ok(line) = lines.try_recv() {
        round_trip.on_line(&line);
    }
    round_trip.end(result, timed_out, stopping)
}

/// Whether these are the last operations of this run on the host.
fn is_last(shared: &Shared, works: &[usize], scripts: &[(Position, Script)]) -> bool {
    let ends = |index: usize| {
        scripts.iter().any(|(position, _)| {
            works[position.work] == index
                && position.operation + 1 == shared.plan.works[index].operations.len()
        })
    };
    let host = &shared.plan.works[works[scripts[0].0.work]].host;
    !shared.options.more && shared.left_on(host).into_iter().all(ends)
}

fn load_at(shared: &Shared, works: &[usize], position: Position) -> Load {
    shared.plan.works[works[position.work]].operations[position.operation].action.load()
}

/// The sum of the time limits of the tasks of these scripts.
fn time_for(shared: &Shared, works: &[usize], scripts: &[(Position, Script)]) -> Duration {
    let mut members: Vec<usize> = scripts.iter().map(|(position, _)| position.work).collect();
    members.dedup();
    members.into_iter().map(|work| shared.plan.steps[shared.plan.works[works[work]].step].timeout).sum()
}

/// Waits until the deadline; without a deadline, forever.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// A round trip with scripts in progress.
struct RoundTrip<'a> {
    shared: &'a Shared,
    works: &'a [usize],
    attempt: u32,
    scripts: &'a [(Position, Script)],
    reader: Reader,
    /// The directory in which it runs on the host.
    directory: Option<String>,
    /// The first script that has not ended.
    next: usize,
    /// The position after the last script that has ended.
    position: Position,
    /// When the time limit of the running script's task ends.
    deadline: Option<Instant>,
    failure: Option<(Position, Failure)>,
    /// The permit to work; a wait needs none.
    permit: Option<Permit>,
}

impl<'a> RoundTrip<'a> {
    fn new(
        shared: &'a Shared,
        works: &'a [usize],
        attempt: u32,
        scripts: &'a [(Position, Script)],
        reader: Reader,
    ) -> Self {
        let position = scripts[0].0;
        Self {
            shared,
            works,
            attempt,
            scripts,
            reader,
            directory: None,
            next: 0,
            position,
            deadline: None,
            failure: None,
            permit: None,
        }
    }

    /// Handles a line of the driver.
    fn on_line(&mut self, line: &str) {
        match self.reader.push(line) {
            Some(Signal::Directory(directory)) => self.directory = Some(directory),
            Some(Signal::Refused) => self.started(),
            Some(Signal::Started(number)) if number == self.next => {
                self.started();
                self.begun();
            }
            Some(Signal::Ended(ended)) if ended.operation == self.next => self.ended(ended),
            _ => {}
        }
    }

    fn started(&mut self) {
        let Some((position, _)) = self.scripts.get(self.next) else { return };
        let index = self.works[position.work];
        let attempt = if position.work == self.scripts[0].0.work { self.attempt } else { 1 };
        let began = self.shared.tracker.started(&self.shared.plan, index, attempt);
        let limit = self.shared.plan.steps[self.shared.plan.works[index].step].timeout;
        self.deadline = Some(Instant::from_std(began) + limit);
        if load_at(self.shared, self.works, *position) == Load::Wait {
            self.permit = None;
        }
    }

    fn begun(&self) {
        if let Some((position, _)) = self.scripts.get(self.next) {
            self.shared.tracker.begun(&self.shared.plan, self.works[position.work], position.operation);
        }
    }

    fn ended(&mut self, ended: EndedOperation) {
        let Some((position, script)) = self.scripts.get(self.next) else { return };
        self.deadline = None;
        let subject = self.shared.plan.works[self.works[position.work]].subject();
        for note in &ended.notes {
            self.shared.tracker.note(subject, note.clone());
        }
        if ended.code != 0 {
            self.failure = Some((*position, self.failure_of(*position, ended)));
            return;
        }
        let output = script.output.as_ref().map(|output| match &ended.stdout {
            Some(stdout) => output(stdout, &self.shared.slots),
            None => Err(Failure::new(format!("it printed more than {} MiB", batch::STDOUT >> 20))),
        });
        if let Some(Err(failure)) = output {
            self.failure.get_or_insert((*position, failure));
        }
        if self.failure.is_none() {
            self.position = done(self.shared, self.works, *position);
            self.next += 1;
        }
    }

    fn failure_of(&self, position: Position, ended: EndedOperation) -> Failure {
        let EndedOperation { code, stderr, command, .. } = ended;
        let action = &self.operation(position).action;
        let text = stderr.join("\n");
        Failure {
            cause: headline(&stderr).unwrap_or_else(|| format!("it ended with code {code}")),
            command: command.or_else(|| self.command_at(position)),
            code: Some(code),
            hint: action.hint(&text).or_else(|| host_lock::hint(&text)),
            transient: action.transient(code, &text),
            stderr,
            ..Failure::default()
        }
    }

    fn operation(&self, position: Position) -> &Operation {
        &self.shared.plan.works[self.works[position.work]].operations[position.operation]
    }

    /// The text to show for a script that does not name the command that failed: a script of a single command is shown unchanged,
    /// otherwise the change lines of the operation are shown.
    fn command_at(&self, position: Position) -> Option<String> {
        let (_, script) = self.scripts.iter().find(|(at, _)| *at == position)?;
        let lines = script.text.lines().map(str::trim);
        let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        match (lines.next(), lines.next()) {
            (Some(line), None) => Some(line.chars().take(300).collect()),
            _ => Some(self.operation(position).changes.join("; ")),
        }
    }

    /// Makes the running operation the last one: the driver checks for this file before each operation, and the command ends an
    /// operation that only waits. Returns whether the directory is known.
    fn stop(&self, connection: &Arc<dyn Connection>) -> bool {
        let Some(directory) = self.directory.clone() else { return false };
        let connection = connection.clone();
        tokio::spawn(async move {
            let text = batch::stop(&directory);
            // If it is too late, everything has ended already.
            let _ = connection.run(Command { timeout: SLACK, ..Command::new(text) }).await;
        });
        true
    }

    fn end(mut self, result: Result<Output, Error>, timed_out: bool, stopping: bool) -> Ended {
        if let Some((position, failure)) = self.failure {
            return Ended::Failed(position, failure);
        }
        let Some(&(position, _)) = self.scripts.get(self.next) else { return Ended::At(self.position) };
        let stderr = self.reader.stderr();
        // The last messages may have been lost with the connection.
        let may_have_begun = self.directory.is_some() || matches!(result, Err(Error::Lost { .. }));
        let failure = match result {
            _ if timed_out => {
                let work = &self.shared.plan.works[self.works[position.work]];
                let after = self.shared.plan.steps[work.step].timeout;
                let hint = work.operations[position.operation].action.hint(&stderr.join("\n"));
                Failure { hint, ..Failure::from(Error::Timeout { host: work.host.clone(), after }) }
            }
            Ok(output) if output.code == 0 && stopping => return Ended::At(self.position),
            Ok(output) => Failure {
                code: Some(output.code),
                stderr: batch::last_lines(&output.stderr),
                ..Failure::new("the script ended too early")
            },
            Err(error) => Failure::from(error),
        };
        self.started();
        if may_have_begun {
            self.begun();
        }
        let stderr = if stderr.is_empty() { failure.stderr.clone() } else { stderr };
        Ended::Failed(position, Failure { command: self.command_at(position), stderr, ..failure })
    }
}

/// Lines that end an error without naming the cause: kubeadm's and cobra's advice, the end of a `kubectl describe`.
const NO_CAUSE: [&str; 3] = ["To see the stack trace", "Tolerations:", "Events:"];

/// The most informative line of standard error: the last that begins with "error", unless the very last line repeats it and adds
/// to it. Without such a line, the last line that names a cause.
fn headline(stderr: &[String]) -> Option<String> {
    let is_error = |line: &&String| line.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("error"));
    let says =
        |line: &&String| !line.starts_with(' ') && !NO_CAUSE.iter().any(|start| line.starts_with(start));
    let mut lines = stderr.iter().rev();
    let repeats = |error: &&String| lines.clone().next().filter(|last| last.contains(error.trim()));
    let error = lines.clone().find(is_error).map(|error| repeats(&error).unwrap_or(error));
    let line = error.or_else(|| lines.clone().find(says)).or_else(|| lines.next());
    line.map(|line| line.trim().to_owned())
}
