//! The operator: loads hooks, fills queues, runs hooks, and ends tidily.
//!
//! [`Operator`] owns all state; its parts are in the files beside this one: what is done for a task (`enable`,
//! `run`), what makes tasks (`sink`, `schedules`), and what is shown to the outside (`http`).

mod api;
mod debug;
mod debug_text;
mod enable;
mod gate;
mod http;
mod leader;
mod log_level;
mod run;
mod schedules;
mod settings;
mod sink;
mod start;
mod webhooks;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::cluster::{Hub, Monitor};
use crate::hook::Hook;
use crate::log::Logger;
use crate::metrics::{OperatorMetrics, Registry};
use crate::patch::Patcher;
use crate::queue::{BindingType, Handler, Outcome, Queue, Queues, Task, Work};
use api::ObjectApi;
use gate::Gate;
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
    hooks: HashMap<Arc<str>, HookState>,
    queues: Queues,
    hub: Arc<Hub>,
    api: ObjectApi,
    patcher: Patcher,
    schedules: Schedules,
    metrics: OperatorMetrics,
    hook_metrics: Registry,
    prepared: tokio::sync::OnceCell<()>,
    /// Tasks of the start that are not done yet.
    bootstrap: AtomicUsize,
    /// Whether another replica acts.
    standby: AtomicBool,
    stop: CancellationToken,
}

/// A hook and what is watched for it.
struct HookState {
    hook: Arc<Hook>,
    monitors: Vec<Arc<Monitor>>,
    gate: Mutex<Gate>,
}

impl HookState {
    fn new(hook: Arc<Hook>) -> Self {
        let version = hook.config.version;
        let bindings = hook.config.kubernetes.iter().enumerate();
        let monitors =
            bindings.map(|(i, binding)| Monitor::new(hook.name.clone(), i, version, binding.clone()));
        Self { monitors: monitors.collect(), gate: Mutex::default(), hook }
    }

    fn gate(&self) -> std::sync::MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handler for Arc<Operator> {
    async fn handle(&self, queue: &Queue, task: Task) -> Outcome {
        let Some(state) = self.hooks.get(&task.hook) else { return Outcome::Done(Vec::new()) };
        let outcome = match &task.work {
            Work::EnableKubernetesBindings => self.enable_kubernetes(state).await,
            Work::EnableScheduleBindings => {
                self.schedules.enable(&state.hook);
                Outcome::Done(Vec::new())
            }
            Work::Run(run) => self.run_hook(state, queue, &task, run).await,
        };
        let at_start = match &task.work {
            Work::Run(run) => run.binding_type == BindingType::OnStartup,
            _ => true,
        };
        if at_start && matches!(outcome, Outcome::Done(_)) {
            self.bootstrap.fetch_sub(1, Ordering::Relaxed);
        }
        outcome
    }

    fn observe(&self, queue: &Queue, action: &'static str, time: std::time::Duration) {
        self.metrics.queue_action(queue.name(), action, time);
    }
}

impl Operator {
    /// Whether everything of the start has been done, the runs with the state at start included.
    ///
    /// A replica that waits for its turn is ready, unless the API server would ask it.
    pub fn is_ready(&self) -> bool {
        if self.standby.load(Ordering::Relaxed) {
            return !self.hooks.values().any(|state| state.hook.config.has_webhooks());
        }
        self.bootstrap.load(Ordering::Relaxed) == 0 && self.hooks.values().all(|state| state.gate().is_open())
    }
}
