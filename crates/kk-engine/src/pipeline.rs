//! Pipeline, Module and Task: the work of one command, as plain data.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, hash_map::RandomState},
    hash::BuildHasher,
    time::Duration,
};

use crate::{Action, CONTROL, Most, ProbeSpec, SlotKey, Turn};

/// The work of one command: an ordered list of modules.
pub struct Pipeline {
    /// The modules in the order in which they are shown.
    pub modules: Vec<Module>,
    /// Hosts that the command does not change. A slot of such a host that no task provides counts as filled.
    pub outside: BTreeSet<String>,
}

impl Pipeline {
    /// A pipeline for all hosts.
    pub fn new(modules: Vec<Module>) -> Self {
        Self { modules, outside: BTreeSet::new() }
    }

    /// Names the hosts that the command does not change.
    #[must_use]
    pub fn outside(mut self, hosts: impl IntoIterator<Item = String>) -> Self {
        self.outside.extend(hosts);
        self
    }

    /// The facts that the checks of its actions read, by host. For the probe, the pipeline is built from empty
    /// facts.
    pub fn asks(&self) -> BTreeMap<String, ProbeSpec> {
        let mut specs: BTreeMap<String, ProbeSpec> = BTreeMap::new();
        let tasks = self.modules.iter().flat_map(|module| &module.tasks);
        for (host, work) in tasks.flat_map(|task| &task.hosts) {
            let spec = specs.entry(host.clone()).or_default();
            for action in &work.actions {
                action.asks(spec);
            }
        }
        specs
    }
}

/// One capability: its tasks in order. A skipped module has no tasks.
pub struct Module {
    /// Short name and directory: `etcd`.
    pub name: &'static str,
    /// The tasks, in lane order.
    pub tasks: Vec<Task>,
    /// Why the module does nothing in this run, if a setting excludes it.
    pub skipped: Option<String>,
}

impl Module {
    /// A module of these tasks.
    pub fn new(name: &'static str, tasks: Vec<Task>) -> Self {
        Self { name, tasks, skipped: None }
    }

    /// A module that a setting excludes.
    pub fn skipped(name: &'static str, why: impl Into<String>) -> Self {
        Self { name, tasks: Vec::new(), skipped: Some(why.into()) }
    }
}

/// One step on a set of hosts.
pub struct Task {
    /// Name of its file, unique inside the module: `start_etcd`. Created at run time for a task of one host's turn:
    /// `drain_node7`.
    pub name: Cow<'static, str>,
    /// The title shown while it runs: "Start etcd".
    pub title: Cow<'static, str>,
    /// The work of each host, by host name.
    pub hosts: BTreeMap<String, HostWork>,
    /// Retries after a failure that an action calls transient. A connection that fails or is lost is retried at least as
    /// [`Retry::CONNECTION`] specifies, because every action checks the host first.
    pub retry: Retry,
    /// Time limit for one attempt on one host.
    pub timeout: Duration,
    /// The turn that it is a part of, on each of its hosts.
    pub turn: Option<Turn>,
    /// Runs in the background of the lane as soon as its needs are filled, on a separate session.
    pub background: bool,
    /// Only waits for its needs: see [`Task::barrier`].
    pub(crate) barrier: bool,
}

impl Task {
    /// A task with no hosts yet, no retry and a time limit of ten minutes for an attempt.
    pub fn new(name: impl Into<Cow<'static, str>>, title: impl Into<Cow<'static, str>>) -> Self {
        Self {
            name: name.into(),
            title: title.into(),
            hosts: BTreeMap::new(),
            retry: Retry::NEVER,
            timeout: Duration::from_mins(10),
            turn: None,
            background: false,
            barrier: false,
        }
    }

    /// A barrier: fills `slot` when all of `needs` are filled. If each of N hosts waits for each of N others, a barrier reduces
    /// N² waits to 2 N.
    pub fn barrier(
        name: impl Into<Cow<'static, str>>,
        needs: impl IntoIterator<Item = SlotKey>,
        slot: SlotKey,
    ) -> Self {
        let work = HostWork { needs: needs.into_iter().collect(), ..HostWork::default() };
        Self { barrier: true, background: true, ..Self::new(name, "") }.on(CONTROL, work.provides(slot))
    }

    /// Adds work for a host.
    #[must_use]
    pub fn on(mut self, host: &str, work: HostWork) -> Self {
        self.hosts.insert(host.to_owned(), work);
        self
    }

    /// Sets the time limit for one attempt.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the retries.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Runs it in the background of its lane.
    #[must_use]
    pub fn background(mut self) -> Self {
        self.background = true;
        self
    }

    /// Limits the number of hosts that work on it at once, by a turn of this task alone.
    #[must_use]
    pub fn concurrency(self, hosts: usize) -> Self {
        let turn = Turn::new(self.name.clone(), Most::Hosts(hosts));
        self.turn(turn)
    }

    /// Makes it a part of its hosts' turns.
    #[must_use]
    pub fn turn(mut self, turn: Turn) -> Self {
        self.turn = Some(turn);
        self
    }
}

/// The part of a task that one host does.
#[derive(Default)]
pub struct HostWork {
    /// Operations in order. Operations without a difference are left out of the run.
    pub actions: Vec<Box<dyn Action>>,
    /// Slots that must be filled before it begins.
    pub needs: Vec<SlotKey>,
    /// Soft dependencies: slots that must be filled or failed before it begins. Unlike `needs`, a failed provider does not fail
    /// this task; the two differ only if `--ignore-err` has dropped a host.
    pub after: Vec<SlotKey>,
    /// Slots that are filled when it is done (or if there was nothing to do).
    pub provides: Vec<SlotKey>,
    /// The host that the work concerns, if another host does it: a drain runs where the API is. It is shown instead of the
    /// working host, and it is the host whose turn it is.
    pub about: Option<String>,
    /// Among works that wait for a permit to work or to upload, the highest priority is first.
    pub priority: u8,
}

impl HostWork {
    /// Work without needs.
    pub fn new(actions: Vec<Box<dyn Action>>) -> Self {
        Self { actions, ..Self::default() }
    }

    /// Adds a slot that must be filled before it begins.
    #[must_use]
    pub fn needs(mut self, key: SlotKey) -> Self {
        self.needs.push(key);
        self
    }

    /// Adds a slot that must be filled or failed before it begins.
    #[must_use]
    pub fn after(mut self, key: SlotKey) -> Self {
        self.after.push(key);
        self
    }

    /// Names the host that the work concerns, if another host does it.
    #[must_use]
    pub fn about(mut self, host: impl Into<String>) -> Self {
        self.about = Some(host.into());
        self
    }

    /// Sets the priority for permits; 0 is the lowest.
    #[must_use]
    pub fn priority(mut self, priority: u8) -> Self {
        self.priority = priority;
        self
    }

    /// Adds a slot that is filled afterwards.
    #[must_use]
    pub fn provides(mut self, key: SlotKey) -> Self {
        self.provides.push(key);
        self
    }
}

/// Retries, only after errors that can pass (connection, timeout, "not ready yet").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Number of attempts, at least 1.
    pub attempts: u32,
    /// Wait before the second attempt; doubles each time, with jitter.
    pub delay: Duration,
    /// Longest wait between two attempts.
    pub longest: Duration,
}

impl Retry {
    /// One attempt.
    pub const NEVER: Self = Self { attempts: 1, delay: Duration::ZERO, longest: Duration::ZERO };

    /// The retries after a broken connection, in every task.
    pub const CONNECTION: Self = Self::times(3);

    /// `attempts` attempts, the first wait one second, the longest fifteen.
    pub const fn times(attempts: u32) -> Self {
        Self { attempts, delay: Duration::from_secs(1), longest: Duration::from_secs(15) }
    }

    /// The wait before the attempt after the `attempt`th: doubled each time, and varied by up to a quarter, so that hosts that
    /// failed together do not retry together.
    pub(crate) fn pause(self, attempt: u32) -> Duration {
        let doubled = self.delay.saturating_mul(1 << (attempt - 1).min(16)).min(self.longest);
        let percent = 75 + RandomState::new().hash_one(attempt) % 51;
        doubled.mul_f64(f64::from(u8::try_from(percent).unwrap_or(100)) / 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_vary_by_a_quarter() {
        let retry = Retry::times(9);
        for (attempt, seconds) in [(1, 1.0), (2, 2.0), (4, 8.0), (5, 15.0), (40, 15.0)] {
            let pause = retry.pause(attempt).as_secs_f64();
            assert!(pause >= seconds * 0.75 && pause <= seconds * 1.26, "{attempt}: {pause}");
        }
    }
}
