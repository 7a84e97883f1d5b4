//! The operator: loads hooks, fills queues, runs hooks, and ends tidily.
//!
//! [`Operator`] owns all state; its parts are in the files beside this one: the hooks (`active`, `reload`), what is done
//! for a task (`enable`, `run`), what makes tasks (`sink`, `schedules`), and what is shown to the outside (`http`,
//! `debug`).

mod active;
mod api;
mod debug;
mod debug_text;
mod enable;
mod gate;
mod http;
mod leader;
mod log_level;
mod reload;
mod run;
mod schedules;
mod settings;
mod sink;
mod start;
mod webhooks;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cluster::Hub;
use crate::hook::Loader;
use crate::log::Logger;
use crate::metrics::{OperatorMetrics, Registry};
use crate::patch::Patcher;
use crate::queue::{BindingType, Handler, Outcome, Queue, Queues, Task, Work};
use active::{ActiveHooks, HookState};
use api::ObjectApi;
pub use leader::LeaseName;
use log_level::LogLevel;
use schedules::Schedules;
pub use settings::{Settings, WebhookServer, WebhookSettings};
pub use start::{StartError, start};

/// A running operator.
pub struct Operator {
    settings: Settings,
    logger: Logger,
    log_level: LogLevel,
    hooks: ActiveHooks,
    loader: Loader,
    /// Told when the set of hooks has been replaced.
    hooks_changed: tokio::sync::watch::Sender<()>,
    /// Kinds of admission configurations that lead to this operator.
    registered: Mutex<BTreeSet<&'static str>>,
    /// Why the hooks in the directory are not those that are active.
    reload_failure: Mutex<Option<String>>,
    queues: Queues,
    hub: Arc<Hub>,
    api: ObjectApi,
    patcher: Patcher,
    schedules: Schedules,
    metrics: OperatorMetrics,
    hook_metrics: Registry,
    prepared: tokio::sync::OnceCell<()>,
    /// Whether everything of the start was done once.
    ready: AtomicBool,
    /// Whether another replica acts.
    standby: AtomicBool,
    /// Names of the queues that have a worker. Locked while it is decided who begins what.
    workers: Mutex<BTreeSet<Arc<str>>>,
    /// Everything that has to end before the operator does.
    tasks: TaskTracker,
    /// Cancelled when the operator ends: nothing new begins.
    stop: CancellationToken,
    /// Cancelled when the time that running hooks have then is over.
    end_hooks: CancellationToken,
    /// Whether another replica may act now.
    lease_lost: AtomicBool,
}

impl Handler for Arc<Operator> {
    async fn admit(&self, hook: &Arc<str>) {
        let Some(state) = self.hooks.of(hook) else { return };
        state.alone().await;
        state.hook.limiter.wait().await;
    }

    async fn handle(&self, queue: &Queue, task: Task) -> Outcome {
        let Some((state, _token)) = self.hooks.begin(&task) else { return Outcome::Done(Vec::new()) };
        let outcome = match &task.work {
            Work::EnableKubernetesBindings => self.enable_kubernetes(&state).await,
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

impl Operator {
    /// Whether everything of the start has been done, the runs with the state at start included. It stays so when hooks
    /// change later, because those that did not go on answering.
    ///
    /// A replica that waits for its turn is ready, unless the API server would ask it.
    pub fn is_ready(&self) -> bool {
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
