//! Counts and reports a run: which tasks have begun, which have ended, and when a module is done.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard},
    time::{Duration, Instant},
};

use super::TaskFailure;
use crate::{CONTROL, EventKind, EventSender, Failure, Outcome, Plan, plan::Work};

/// The counts of one run. Shared by all lanes.
pub(super) struct Tracker {
    events: EventSender,
    counts: Mutex<Counts>,
}

/// The counts of [`Tracker`].
#[derive(Default)]
pub(super) struct Counts {
    pub(super) failures: Vec<TaskFailure>,
    /// Host → why it was given up (only with `ignore_err`).
    pub(super) dropped: BTreeMap<String, String>,
    /// Operations that changed something.
    pub(super) changed: usize,
    /// Operations that change something and have begun on a host, counted once for each attempt.
    pub(super) begun: usize,
    /// Tasks × hosts that did not finish.
    pub(super) unfinished: usize,
    modules: HashMap<usize, ModuleCount>,
    /// When the attempt with this number began.
    began: HashMap<usize, (u32, Instant)>,
}

#[derive(Default)]
struct ModuleCount {
    left: usize,
    unfinished: bool,
    began: Option<Instant>,
}

impl Tracker {
    pub(super) fn new(plan: &Plan, events: EventSender) -> Self {
        let mut counts = Counts::default();
        for work in plan.works.iter().filter(|work| !work.operations.is_empty()) {
            counts.modules.entry(plan.steps[work.step].module).or_default().left += 1;
        }
        Self { events, counts: Mutex::new(counts) }
    }

    pub(super) fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().expect("no holder of this lock panics")
    }

    /// Records that an operation of a task begins on a host. The first operation of an attempt starts the attempt. Returns the
    /// time when the attempt began.
    pub(super) fn started(&self, plan: &Plan, index: usize, attempt: u32) -> Instant {
        let step = &plan.steps[plan.works[index].step];
        let now = Instant::now();
        let mut counts = self.counts();
        if let Some((_, began)) = counts.began.get(&index).filter(|(number, _)| *number == attempt) {
            return *began;
        }
        counts.began.insert(index, (attempt, now));
        if let Some(module) = counts.modules.get_mut(&step.module) {
            module.began.get_or_insert(now);
        }
        drop(counts);
        let Names { host, module, task, title } = Names::of(plan, &plan.works[index]);
        self.events.send(EventKind::TaskStarted { host, module, task, title, attempt });
        now
    }

    /// Records that an operation runs, or may run, on its host. Operations on the control machine change no host.
    pub(super) fn begun(&self, plan: &Plan, index: usize, operation: usize) {
        self.counts().begun += usize::from(changes_host(&plan.works[index], operation));
    }

    /// Revokes [`Tracker::begun`]: the operation did not begin, because another owner has the lock on its host.
    pub(super) fn refused(&self, plan: &Plan, index: usize, operation: usize) {
        self.counts().begun -= usize::from(changes_host(&plan.works[index], operation));
    }

    /// Counts an operation that changed something.
    pub(super) fn changed(&self) {
        self.counts().changed += 1;
    }

    /// Reports the bytes of a transfer.
    pub(super) fn progress(&self, plan: &Plan, index: usize, done: u64, total: u64) {
        let Names { host, module, task, .. } = Names::of(plan, &plan.works[index]);
        self.events.send(EventKind::Progress { host, module, task, done, total });
    }

    /// Reports that a task will be retried on a host.
    pub(super) fn retrying(&self, plan: &Plan, index: usize, failure: Failure, wait: Duration) {
        self.emit(plan, index, Outcome::Retrying { failure, wait_ms: milliseconds(wait) });
    }

    /// Reports that a task is done on a host.
    pub(super) fn done(&self, plan: &Plan, index: usize) {
        self.emit(plan, index, Outcome::Changed { changes: plan.works[index].changes() });
        self.leave(plan, index, true);
    }

    /// Reports that a task has failed on a host.
    pub(super) fn failed(&self, plan: &Plan, index: usize, failure: &Failure) {
        self.emit(plan, index, Outcome::Failed { failure: failure.clone() });
        self.leave(plan, index, false);
    }

    /// Reports that a task was not begun on a host, or not continued.
    pub(super) fn skipped(&self, plan: &Plan, index: usize, reason: &str) {
        self.emit(plan, index, Outcome::Skipped { message: reason.to_owned() });
        self.leave(plan, index, false);
    }

    /// Reports a message for the user about a host.
    pub(super) fn note(&self, host: &str, message: String) {
        self.events.send(EventKind::Note { host: Some(host.to_owned()), message });
    }

    fn emit(&self, plan: &Plan, index: usize, outcome: Outcome) {
        let took = self.counts().began.get(&index).map_or(Duration::ZERO, |(_, began)| began.elapsed());
        let Names { host, module, task, title } = Names::of(plan, &plan.works[index]);
        let took_ms = milliseconds(took);
        self.events.send(EventKind::TaskFinished { host, module, task, title, outcome, took_ms });
    }

    fn leave(&self, plan: &Plan, index: usize, well: bool) {
        let number = plan.steps[plan.works[index].step].module;
        let mut counts = self.counts();
        counts.unfinished += usize::from(!well);
        let Some(module) = counts.modules.get_mut(&number) else { return };
        module.left -= 1;
        module.unfinished |= !well;
        let over = module.left == 0 && !module.unfinished;
        let Some(began) = module.began.filter(|_| over) else { return };
        drop(counts);
        let module = plan.modules[number].to_owned();
        self.events.send(EventKind::ModuleFinished { module, took_ms: milliseconds(began.elapsed()) });
    }
}

fn changes_host(work: &Work, operation: usize) -> bool {
    work.host != CONTROL && work.operations[operation].action.is_change()
}

/// The names by which a work is reported.
struct Names {
    host: String,
    module: String,
    task: String,
    title: String,
}

impl Names {
    fn of(plan: &Plan, work: &Work) -> Self {
        let step = &plan.steps[work.step];
        Self {
            host: work.subject().to_owned(),
            module: plan.modules[step.module].to_owned(),
            task: step.name.to_string(),
            title: step.title.to_string(),
        }
    }
}

pub(super) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
