//! The state that all parts of a running operator share, and the entry point of every task of a queue.
//!
//! Its methods are its life (`life`) and the work for a task (`enable`, `run`). The other parts are values of their own that
//! refer to it: `reload` replaces the hooks, `webhooks` lets the API server query them, `http` and `debug` show it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Settings;
use super::active::ActiveHooks;
use super::api::ObjectApi;
use super::log_level::LogLevel;
use super::runner::Runner;
use super::schedules::Schedules;
use crate::cluster::Hub;
use crate::metrics::OperatorMetrics;
use crate::queue::{BindingType, Handler, Outcome, Queue, Queues, Task, Work};

/// A running operator.
pub(super) struct Core {
    pub(super) settings: Settings,
    pub(super) log_level: LogLevel,
    pub(super) hooks: ActiveHooks,
    pub(super) runner: Runner,
    /// Notified when the set of hooks has been replaced.
    pub(super) hooks_changed: tokio::sync::watch::Sender<()>,
    /// Why the hooks in the directory are not those that are active.
    pub(super) reload_failure: Mutex<Option<String>>,
    pub(super) queues: Queues,
    pub(super) hub: Arc<Hub>,
    pub(super) api: ObjectApi,
    pub(super) schedules: Schedules,
    pub(super) metrics: OperatorMetrics,
    pub(super) prepared: tokio::sync::OnceCell<()>,
    /// Whether everything of the start was done once.
    pub(super) ready: AtomicBool,
    /// Whether another replica acts.
    pub(super) standby: AtomicBool,
    /// Names of the queues that have a worker. Locked while the operator decides which workers and tasks begin.
    pub(super) workers: Mutex<BTreeSet<Arc<str>>>,
    /// Everything that has to end before the operator does.
    pub(super) tasks: TaskTracker,
    /// Cancelled when the operator ends: nothing new begins.
    pub(super) stop: CancellationToken,
}

impl Handler for Arc<Core> {
    async fn admit(&self, hook: &Arc<str>) {
        let Some(state) = self.hooks.of(hook) else { return };
        state.alone().await;
        state.hook.limiter.wait().await;
    }

    async fn handle(&self, queue: &Queue, task: Task) -> Outcome {
        let Some((state, _token)) = self.hooks.begin(&task) else { return Outcome::Done(Vec::new()) };
        let outcome = match &task.work {
            Work::EnableKubernetesBindings => tokio::select! {
                // The API server may not answer.
                () = self.stop.cancelled() => Outcome::Stopped,
                outcome = self.enable_kubernetes(&state) => outcome,
            },
            Work::EnableScheduleBindings => {
                self.enable_schedules(&state);
                Outcome::Done(Vec::new())
            }
            Work::Run(run) => self.run_hook(&state, queue, &task, run).await,
        };
        if state.is_retired() && !matches!(outcome, Outcome::Stopped) {
            self.metrics.hook_failing(&task.hook, queue.name(), false);
            return Outcome::Done(Vec::new());
        }
        let at_start = match &task.work {
            Work::Run(run) => run.binding_type == BindingType::OnStartup,
            _ => true,
        };
        if at_start && matches!(outcome, Outcome::Done(_)) {
            state.first_task_done();
        }
        outcome
    }

    fn observe(&self, queue: &Queue, action: &'static str, time: std::time::Duration) {
        self.metrics.queue_action(queue.name(), action, time);
    }
}

impl Core {
    /// Whether everything of the start has been done, the runs with the state at start included. It stays so when hooks change
    /// later, because unchanged hooks continue to answer.
    ///
    /// A replica that waits for its turn is ready, unless the API server would send requests to it.
    pub(super) fn is_ready(&self) -> bool {
        let hooks = self.hooks.get();
        if self.standby.load(Ordering::Relaxed) {
            return !hooks.values().any(|state| state.hook.config.has_webhooks());
        }
        if !self.ready.load(Ordering::Relaxed) && hooks.values().all(|state| state.is_settled()) {
            self.ready.store(true, Ordering::Relaxed);
        }
        self.ready.load(Ordering::Relaxed)
    }
}
