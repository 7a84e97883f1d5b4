//! The state that the lanes of one run share: the plan, the slots, the limits, and whether to continue.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard},
};

use async_trait::async_trait;
use kk_connector::{Command, Connection, Error, Output, Stats, Upload, UploadOutcome};
use tokio::sync::watch;

use super::{
    Options, Report, TaskFailure,
    host_lock::Locking,
    queue::{Permit, Queue},
    tracker::Tracker,
    turns::Turns,
};
use crate::{EventSender, Failure, Load, Plan, Slots, plan::Work};

/// The shared state of all lanes.
pub(super) struct Shared {
    pub(super) plan: Plan,
    pub(super) options: Options,
    pub(super) slots: Slots,
    pub(super) tracker: Tracker,
    events: EventSender,
    connections: BTreeMap<String, Arc<dyn Connection>>,
    forks: Queue,
    uploads: Queue,
    pulls: Queue,
    pub(super) turns: Turns,
    /// By host: the works that have not ended.
    left: Mutex<HashMap<String, BTreeSet<usize>>>,
    /// By host: the reason why nothing new may begin there.
    halts: BTreeMap<String, watch::Sender<Option<String>>>,
}

impl Shared {
    pub(super) fn new(
        plan: Plan,
        connections: BTreeMap<String, Arc<dyn Connection>>,
        options: Options,
        events: EventSender,
    ) -> Self {
        Self {
            slots: Slots::default(),
            tracker: Tracker::new(&plan, events.clone()),
            events,
            connections,
            forks: Queue::new(options.forks),
            uploads: Queue::new(options.upload_forks),
            pulls: Queue::new(options.pull_forks),
            turns: Turns::new(&plan.turns),
            left: Mutex::new(by_host(&plan)),
            halts: plan.works.iter().map(|work| (work.host.clone(), watch::channel(None).0)).collect(),
            plan,
            options,
        }
    }

    /// Fills the slots of works that have nothing to do.
    pub(super) fn publish_idle(&self) {
        let is_idle = |work: &&Work| work.operations.is_empty() && !self.plan.steps[work.step].barrier;
        for work in self.plan.works.iter().filter(is_idle) {
            self.publish(work);
        }
    }

    /// Waits for the needs of a barrier, and fills or fails its slots.
    pub(super) async fn barrier(&self, index: usize) {
        let work = &self.plan.works[index];
        match self.needs(work).await {
            Ok(()) => self.publish(work),
            Err(reason) => self.fail_slots(work, &reason),
        }
    }

    /// The works of a host that have not ended.
    pub(super) fn left_on(&self, host: &str) -> Vec<usize> {
        self.left().get(host).map(|left| left.iter().copied().collect()).unwrap_or_default()
    }

    fn left(&self) -> MutexGuard<'_, HashMap<String, BTreeSet<usize>>> {
        self.left.lock().expect("no holder of this lock panics")
    }

    /// A work is done.
    pub(super) fn done(&self, index: usize) {
        self.tracker.done(&self.plan, index);
        self.turns.ended(index, None);
        if let Some(left) = self.left().get_mut(&self.plan.works[index].host) {
            left.remove(&index);
        }
        self.publish(&self.plan.works[index]);
    }

    /// Fills the slots of a work that is done; slots that the work filled with values stay unchanged.
    pub(super) fn publish(&self, work: &Work) {
        for slot in &work.provides {
            self.slots.done(slot);
        }
    }

    /// The connection to a host.
    pub(super) fn connection(&self, host: &str) -> Arc<dyn Connection> {
        match self.connections.get(host) {
            Some(connection) => connection.clone(),
            None => Arc::new(Unconnected(host.to_owned())),
        }
    }

    /// The connection to a host for the code of an operation of a work.
    pub(super) fn connection_for_code(&self, index: usize, operation: usize) -> Arc<dyn Connection> {
        let work = &self.plan.works[index];
        let inner = self.connection(&work.host);
        let Some(owner) = self.options.owner.clone() else { return inner };
        let is_last = operation + 1 == work.operations.len() && self.left_on(&work.host) == [index];
        Arc::new(Locking { inner, owner, last: is_last && !self.options.more })
    }

    /// Halts all hosts: nothing new begins on them.
    pub(super) fn halt_all(&self, reason: &str) {
        for host in self.halts.keys() {
            self.halt(host, reason);
        }
    }

    /// Halts a host: nothing new begins on it. The first reason is kept.
    pub(super) fn halt(&self, host: &str, reason: &str) {
        self.halts[host].send_if_modified(|now| {
            let first = now.is_none();
            if first {
                *now = Some(reason.to_owned());
            }
            first
        });
    }

    /// Waits until a host is halted and returns the reason.
    pub(super) async fn halted(&self, host: &str) -> String {
        let mut halt = self.halts[host].subscribe();
        let reason = halt.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone());
        match reason {
            Some(reason) => reason,
            // Not reached: the sender lives as long as `self`.
            None => std::future::pending().await,
        }
    }

    /// Waits until a work may begin.
    ///
    /// # Errors
    /// The reason why it never may.
    pub(super) async fn ready(&self, work: &Work) -> Result<(), String> {
        self.unless_halted(&work.host, self.needs(work)).await?
    }

    async fn needs(&self, work: &Work) -> Result<(), String> {
        for slot in &work.needs {
            self.slots.wait(slot).await.map_err(|reason| format!("{slot} is missing: {reason}"))?;
        }
        for slot in &work.after {
            // The reason of the failure does not matter here.
            let _ = self.slots.wait(slot).await;
        }
        Ok(())
    }

    /// Waits for `what`, but no longer than until the host is halted.
    pub(super) async fn unless_halted<T>(
        &self,
        host: &str,
        what: impl Future<Output = T>,
    ) -> Result<T, String> {
        tokio::select! {
            biased;
            reason = self.halted(host) => Err(reason),
            value = what => Ok(value),
        }
    }

    /// Waits until the turn that a work is a part of has begun.
    pub(super) async fn turn(&self, index: usize) -> Result<(), String> {
        self.unless_halted(&self.plan.works[index].host, self.turns.begin(index)).await?
    }

    /// A permit for a host's next work; a wait and the control machine need none.
    pub(super) async fn permit(
        &self,
        work: &Work,
        load: Load,
        transfers: bool,
    ) -> Result<Option<Permit>, String> {
        let queue = match load {
            _ if work.host == crate::CONTROL => return Ok(None),
            Load::Wait => return Ok(None),
            Load::Pull => &self.pulls,
            Load::Work if transfers => &self.uploads,
            Load::Work => &self.forks,
        };
        self.unless_halted(&work.host, queue.permit(work.priority)).await.map(Some)
    }

    /// Records the final failure of a work: ends its host, or the whole run.
    pub(super) fn failed(&self, index: usize, failure: &Failure) {
        let work = &self.plan.works[index];
        let step = &self.plan.steps[work.step];
        let failure = self.events.redactor().failure(failure);
        let reason = format!("\"{}\" failed on {}", step.title, work.subject());
        self.tracker.failed(&self.plan, index, &failure);
        self.turns.ended(index, Some(&reason));
        let mut counts = self.tracker.counts();
        if self.options.ignore_err {
            counts.dropped.entry(work.host.clone()).or_insert(reason.clone());
        }
        if !self.options.cancel.is_cancelled() {
            counts.failures.push(TaskFailure {
                host: work.subject().to_owned(),
                module: self.plan.modules[step.module].to_owned(),
                task: step.name.to_string(),
                title: step.title.to_string(),
                failure,
            });
        }
        drop(counts);
        if self.options.ignore_err {
            self.halt(&work.host, &reason);
        } else {
            self.halt_all(&reason);
        }
    }

    /// Skips these works, which the lane cannot continue with. Lanes that wait for their slots get the reason.
    pub(super) fn give_up(&self, works: &[usize], reason: &str) {
        for &index in works {
            let work = &self.plan.works[index];
            self.tracker.skipped(&self.plan, index, reason);
            self.turns.ended(index, Some(reason));
            self.fail_slots(work, reason);
            if self.options.ignore_err {
                self.tracker.counts().dropped.entry(work.host.clone()).or_insert_with(|| reason.to_owned());
                self.halt(&work.host, reason);
            }
        }
    }

    pub(super) fn fail_slots(&self, work: &Work, reason: &str) {
        for slot in &work.provides {
            self.slots.fail(slot, reason);
        }
    }

    pub(super) fn report(&self) -> Report {
        let Options { stop, cancel, .. } = &self.options;
        let counts = self.tracker.counts();
        let hosts: HashSet<&String> = self.plan.works.iter().map(|work| &work.host).collect();
        let stats = self.connections.iter().filter(|(host, _)| hosts.contains(host));
        Report {
            ok: counts.unfinished == 0,
            stopped: stop.is_cancelled() || cancel.is_cancelled(),
            failures: counts.failures.clone(),
            dropped: counts.dropped.clone(),
            changed: counts.changed,
            begun: counts.begun > 0,
            outputs: self.slots.outputs(),
            round_trips: stats
                .map(|(host, connection)| (host.clone(), connection.stats().round_trips))
                .collect(),
        }
    }
}

/// The works with something to do, by host.
fn by_host(plan: &Plan) -> HashMap<String, BTreeSet<usize>> {
    let mut left: HashMap<String, BTreeSet<usize>> = HashMap::new();
    for (index, work) in plan.works.iter().enumerate().filter(|(_, work)| !work.operations.is_empty()) {
        left.entry(work.host.clone()).or_default().insert(index);
    }
    left
}

/// A placeholder for the connection of a lane that has none: the lane of the control machine, if it runs only code.
struct Unconnected(String);

impl Unconnected {
    fn error(&self) -> Error {
        Error::Login {
            address: self.0.clone(),
            user: "root".into(),
            reason: "this run has no connection to it".into(),
            too_many_tries: false,
        }
    }
}

#[async_trait]
impl Connection for Unconnected {
    fn host(&self) -> &str {
        &self.0
    }

    async fn run(&self, _command: Command) -> Result<Output, Error> {
        Err(self.error())
    }

    async fn upload(&self, _upload: Upload) -> Result<UploadOutcome, Error> {
        Err(self.error())
    }

    async fn read_part(&self, _path: &str, _offset: u64, _most: u64) -> Result<Vec<u8>, Error> {
        Err(self.error())
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }

    async fn close(&self) {}
}
