//! The hooks that are active: one set, which is replaced as a whole.
//!
//! A task belongs to one load of a hook, identified by the address of the hook's name: tasks of a hook that was removed or loaded
//! again do not find a hook.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::gate::Gate;
use crate::cluster::Monitor;
use crate::context::BindingContext;
use crate::hook::Hook;
use crate::queue::{BindingType, Run, Task, Work};

/// Runs of one hook at the same time that answer the API server.
const ANSWERS: usize = 16;

/// Hooks by name, sorted.
pub(super) type HookSet = BTreeMap<Arc<str>, Arc<HookState>>;

/// The set in use.
#[derive(Default)]
pub(super) struct ActiveHooks(RwLock<Arc<HookSet>>);

impl ActiveHooks {
    /// The set as it is now.
    pub(super) fn get(&self) -> Arc<HookSet> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn replace(&self, set: HookSet) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(set);
    }

    /// The hook that the task belongs to, with a token that lets its successor wait; `None` when it is not active.
    pub(super) fn begin(&self, task: &Task) -> Option<(Arc<HookState>, TaskTrackerToken)> {
        // The lock is held: once the set has been replaced, nothing of the old one begins.
        let set = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let state = set.get(&task.hook).filter(|state| Arc::ptr_eq(&state.hook.name, &task.hook))?;
        Some((state.clone(), state.tasks.token()))
    }

    /// The hook whose name is at this address.
    pub(super) fn of(&self, name: &Arc<str>) -> Option<Arc<HookState>> {
        self.get().get(name).filter(|state| Arc::ptr_eq(&state.hook.name, name)).cloned()
    }

    /// Does `work` unless the hook has been removed or replaced, which cannot happen meanwhile.
    pub(super) fn while_active(&self, state: &HookState, work: impl FnOnce()) {
        let set = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if set.get(&state.hook.name).is_some_and(|active| Arc::ptr_eq(&active.hook, &state.hook)) {
            work();
        }
    }
}

/// A hook and what is watched for it.
pub(super) struct HookState {
    pub(super) hook: Arc<Hook>,
    pub(super) monitors: Vec<Arc<Monitor>>,
    gate: Mutex<Gate>,
    /// First tasks that are not done yet.
    first_tasks: AtomicUsize,
    /// Permits of runs for questions of the API server.
    answers: Semaphore,
    /// Whether the watches of the bindings have been requested; the second cell is for bindings that follow namespaces.
    pub(super) prepared: [OnceCell<()>; 2],
    /// Tasks that are being done.
    tasks: TaskTracker,
    /// The tasks of earlier loads of the hook: two loads do not run at the same time.
    before: Vec<TaskTracker>,
    /// Cancelled when the hook is removed or loaded again.
    pub(super) retired: CancellationToken,
}

impl HookState {
    /// The state of a hook that becomes active, perhaps in place of an earlier load.
    pub(super) fn new(hook: Arc<Hook>, earlier: Option<&HookState>) -> Arc<Self> {
        let version = hook.config.version;
        let bindings = hook.config.kubernetes.iter().enumerate();
        let monitors = bindings
            .map(|(i, binding)| Monitor::new(hook.name.clone(), i, version, binding.clone()))
            .collect();
        let before = earlier.into_iter().flat_map(|state| state.before.iter().chain([&state.tasks]));
        let before = before.filter(|tasks| !tasks.is_empty()).cloned().collect();
        let mut state = Self {
            hook,
            monitors,
            gate: Mutex::default(),
            first_tasks: AtomicUsize::new(0),
            answers: Semaphore::new(ANSWERS),
            prepared: Default::default(),
            tasks: TaskTracker::new(),
            before,
            retired: CancellationToken::new(),
        };
        state.first_tasks = AtomicUsize::new(first_tasks([&state]).len());
        Arc::new(state)
    }

    pub(super) fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bindings with these names.
    pub(super) fn named<'a>(&'a self, names: &'a [String]) -> impl Iterator<Item = &'a Arc<Monitor>> {
        self.monitors.iter().filter(|monitor| names.contains(&monitor.binding.name))
    }

    /// A binding, and the bindings whose objects its runs get, too.
    pub(super) fn with_snapshots_of<'a>(&'a self, monitor: &'a Monitor) -> impl Iterator<Item = &'a Monitor> {
        let included = self.named(&monitor.binding.include_snapshots_from);
        std::iter::once(monitor).chain(included.map(|included| &**included))
    }

    /// Waits until the hook may answer: all objects that it is given are known, and it does not run too often.
    pub(super) async fn turn_to_answer(&self, context: &BindingContext) -> Option<SemaphorePermit<'_>> {
        for monitor in self.named(&context.snapshots) {
            monitor.known().await;
            monitor.caught_up().await;
        }
        let permit = self.answers.acquire().await.ok();
        self.hook.limiter.wait().await;
        permit
    }

    /// Waits until the hook's bindings know the objects of all added namespaces; false when the hook is retired.
    pub(super) async fn caught_up(&self) -> bool {
        let all = async {
            for monitor in &self.monitors {
                monitor.caught_up().await;
            }
        };
        tokio::select! {
            biased;
            () = self.retired.cancelled() => false,
            () = all => true,
        }
    }

    /// Why the hook could not answer in time.
    pub(super) fn why_no_turn(&self, context: &BindingContext) -> String {
        match self.named(&context.snapshots).find(|monitor| !monitor.is_known()) {
            Some(missing) => {
                format!("the objects of the binding '{}' are not known yet", missing.binding.name)
            }
            None => "too many requests for this hook, or executionMinInterval is too long".to_owned(),
        }
    }

    /// Whether the hook's first tasks and its runs with the state at start are done.
    pub(super) fn is_settled(&self) -> bool {
        self.first_tasks.load(Ordering::Relaxed) == 0 && self.gate().is_open()
    }

    pub(super) fn first_task_done(&self) {
        self.first_tasks.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether the hook was removed or loaded again.
    pub(super) fn is_retired(&self) -> bool {
        self.retired.is_cancelled()
    }

    /// Ends what belongs to this load of the hook; running tasks continue.
    pub(super) fn retire(&self) {
        self.retired.cancel();
        self.tasks.close();
    }

    /// Waits until nothing of an earlier load runs any more.
    pub(super) async fn alone(&self) {
        for tasks in self.before.iter().filter(|tasks| !tasks.is_empty()) {
            tracing::info!(
                hook = &*self.hook.name,
                "waiting for the end of a run of the hook as it was before"
            );
            tasks.wait().await;
        }
    }
}

/// The first tasks of `main`: runs at start in their order, then the bindings of each hook.
pub(super) fn first_tasks<'a>(states: impl IntoIterator<Item = &'a HookState>) -> Vec<Task> {
    let hooks: Vec<&Hook> = states.into_iter().map(|state| &*state.hook).collect();
    let mut at_start: Vec<(i64, &Hook)> =
        hooks.iter().filter_map(|hook| Some((hook.config.on_startup?, *hook))).collect();
    // Stable: hooks of the same order run in the order of their paths.
    at_start.sort_by_key(|(order, _)| *order);
    let mut tasks: Vec<Task> = at_start.into_iter().map(|(_, hook)| startup_task(hook)).collect();
    for hook in hooks {
        if !hook.config.kubernetes.is_empty() {
            tasks.push(Task::new(hook.name.clone(), Work::EnableKubernetesBindings));
        }
        if !hook.config.schedules.is_empty() {
            tasks.push(Task::new(hook.name.clone(), Work::EnableScheduleBindings));
        }
    }
    tasks
}

fn startup_task(hook: &Hook) -> Task {
    let run = Run {
        binding_type: BindingType::OnStartup,
        contexts: vec![BindingContext::on_startup()],
        allow_failure: false,
        synchronizes: Vec::new(),
        combines: false,
    };
    Task::new(hook.name.clone(), Work::Run(run))
}
