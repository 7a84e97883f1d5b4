//! Queues of hook runs: one worker each, a failed task stays at the head and blocks its queue.
//!
//! [`Queue`] owns the waiting tasks; [`run`] is its worker. The [`Handler`] does the tasks. Tasks of one hook that wait behind
//! each other are combined when they reach the head.

mod backoff;
mod combine;
mod dump;
mod set;
mod worker;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::context::BindingContext;
pub use backoff::delay;
pub use dump::{QueueDump, TaskDump, dump};
pub use set::Queues;
pub use worker::{Handler, Outcome, run};

/// Number of tasks in a queue from which on the waiting runs of each hook are merged.
const LONG: usize = 100;

/// Something to do for a hook.
#[derive(Clone, Debug)]
pub struct Task {
    /// The hook. Tasks belong together when this is the same value: the name at the same address.
    pub hook: Arc<str>,
    /// The work.
    pub work: Work,
    /// When it was added to the queue, or failed last.
    pub since: Instant,
    /// How often it failed.
    pub failures: u32,
    /// Why it failed last.
    pub last_error: Option<Arc<str>>,
    /// Whether runs that arrive are added to it, because the queue was long.
    merged: bool,
}

/// The work for a hook.
#[derive(Clone, Debug)]
pub enum Work {
    /// Watch what its kubernetes bindings name.
    EnableKubernetesBindings,
    /// Start its schedules.
    EnableScheduleBindings,
    /// Run it.
    Run(Run),
}

/// A run of a hook.
#[derive(Clone, Debug)]
pub struct Run {
    /// Kind of the binding that requested it first.
    pub binding_type: BindingType,
    /// Why it is run; at least one reason.
    pub contexts: Vec<BindingContext>,
    /// Whether a failure is only logged.
    pub allow_failure: bool,
    /// Bindings whose state at start the run hands over; their events begin when it has succeeded.
    pub synchronizes: Vec<usize>,
    /// Whether runs that wait behind it may be added to it (not for v0 hooks).
    pub combines: bool,
}

/// Kind of a binding, as the configuration calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindingType {
    /// `onStartup`
    OnStartup,
    /// `schedule`
    Schedule,
    /// `kubernetes`
    Kubernetes,
    /// `kubernetesValidating`
    Validating,
    /// `kubernetesMutating`
    Mutating,
    /// `kubernetesCustomResourceConversion`
    Conversion,
}

impl BindingType {
    /// Its name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OnStartup => "onStartup",
            Self::Schedule => "schedule",
            Self::Kubernetes => "kubernetes",
            Self::Validating => "kubernetesValidating",
            Self::Mutating => "kubernetesMutating",
            Self::Conversion => "kubernetesCustomResourceConversion",
        }
    }
}

impl Task {
    /// A new task.
    pub fn new(hook: Arc<str>, work: Work) -> Self {
        Self { hook, work, since: Instant::now(), failures: 0, last_error: None, merged: false }
    }

    fn run(&self) -> Option<&Run> {
        if let Work::Run(run) = &self.work { Some(run) } else { None }
    }
}

impl Run {
    /// Whether this is the run at start of a binding without a group: it is never combined.
    fn stands_alone(&self) -> bool {
        !self.synchronizes.is_empty() && self.contexts.first().is_some_and(|context| context.group.is_none())
    }
}

/// The activity of a queue's worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// Nothing to do.
    #[default]
    Idle,
    /// The first task waits until its hook may run again.
    Throttled,
    /// The first task is being done.
    Running,
    /// The first task failed and is retried.
    Sleeping {
        /// How long it waits in all.
        delay: Duration,
        /// Since when.
        since: Instant,
    },
    /// The worker has ended.
    Stopped,
}

/// Waiting tasks of one name.
#[derive(Debug)]
pub struct Queue {
    name: Arc<str>,
    state: Mutex<State>,
    arrived: Notify,
    head_gone: Notify,
}

#[derive(Debug, Default)]
struct State {
    tasks: VecDeque<Task>,
    status: Status,
    /// Since when the first task is the first one, as its worker saw it.
    head_since: Option<Instant>,
}

impl Queue {
    /// An empty queue.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), state: Mutex::default(), arrived: Notify::new(), head_gone: Notify::new() }
    }

    /// The queue's name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Adds tasks at the end, together: the worker sees all of them or none.
    pub fn push(&self, tasks: impl IntoIterator<Item = Task>) {
        let mut state = self.lock();
        for task in tasks {
            combine::push(&mut state.tasks, task);
        }
        drop(state);
        self.arrived.notify_one();
    }

    /// Number of waiting tasks, the one being done included.
    pub fn len(&self) -> usize {
        self.lock().tasks.len()
    }

    /// Whether no task waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of reasons to run hooks that wait.
    pub fn contexts(&self) -> usize {
        self.lock().tasks.iter().filter_map(Task::run).map(|run| run.contexts.len()).sum()
    }

    /// How long the first task has been the first one: it runs, waits for its turn, or fails. `None` when the queue is empty.
    pub fn busy_for(&self) -> Option<Duration> {
        let state = self.lock();
        state.head_since.filter(|_| !state.tasks.is_empty()).map(|since| since.elapsed())
    }

    /// Removes the waiting tasks for which `remove` holds, and returns them; the running task stays. If the first task waited for
    /// its turn and is removed, the worker does not wait any longer.
    pub fn remove(&self, remove: impl Fn(&Task) -> bool) -> Vec<Task> {
        let mut state = self.lock();
        let waiting = matches!(state.status, Status::Sleeping { .. } | Status::Throttled);
        let head_goes = waiting && state.tasks.front().is_some_and(&remove);
        let mut keep_first = state.status == Status::Running;
        let all = std::mem::take(&mut state.tasks);
        let (kept, removed) =
            all.into_iter().partition(|task| std::mem::take(&mut keep_first) || !remove(task));
        state.tasks = kept;
        if head_goes {
            state.head_since = None;
        }
        drop(state);
        if head_goes {
            self.head_gone.notify_waiters();
        }
        Vec::from(removed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of another thread leaves no half-changed task, so the state can be used.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
