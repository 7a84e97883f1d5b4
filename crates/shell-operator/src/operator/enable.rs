//! Setting up what kubernetes bindings watch.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;

use super::{HookState, Operator};
use crate::cluster::Monitor;
use crate::config::{ConfigVersion, MAIN_QUEUE};
use crate::queue::{Outcome, Task};

/// How often a kind that does not exist yet is looked for.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

impl Operator {
    /// Sets up the bindings of one hook and asks for the runs that hand over their state.
    ///
    /// A binding that cannot be set up, because its kind does not exist yet or may not be read, is tried again
    /// beside everything else.
    pub(super) async fn enable_kubernetes(self: &Arc<Self>, state: &Arc<HookState>) -> Outcome {
        let started = Instant::now();
        self.prepared.get_or_init(|| self.prepare_all()).await;
        self.prepare(state).await;
        self.hub.start();
        let (mut tasks, mut complete) = (Vec::new(), true);
        for monitor in &state.monitors {
            if let Err(reason) = self.set_up(state, monitor).await {
                let name = &monitor.binding.name;
                tracing::warn!(hook = &*monitor.hook, binding = name, error = reason, "binding has to wait");
                self.metrics.bindings_enabled(&state.hook.name, started.elapsed(), false);
                self.set_up_later(state.clone(), monitor.clone(), started);
                complete = false;
                continue;
            }
            tasks.extend(self.begin(state, monitor));
        }
        if complete {
            self.metrics.bindings_enabled(&state.hook.name, started.elapsed(), true);
            tracing::info!(hook = &*state.hook.name, "Kubernetes bindings for hook are enabled successfully");
        }
        Outcome::Done(tasks)
    }

    /// Sets up the bindings of all hooks at once, so that they share their lists and list side by side.
    async fn prepare_all(self: &Arc<Self>) {
        join_all(self.hooks.get().values().map(|state| self.prepare(state))).await;
        self.hub.start();
    }

    /// Asks for the watches of a hook's bindings, once. They run from the next `hub.start()` on.
    pub(super) async fn prepare(self: &Arc<Self>, state: &HookState) {
        let attach = async |monitor: &Arc<Monitor>| {
            // What fails is reported when it is the hook's turn.
            let _ = self.attach(state, monitor).await;
        };
        let all = || async {
            join_all(state.monitors.iter().map(attach)).await;
        };
        state.prepared.get_or_init(all).await;
    }

    async fn attach(self: &Arc<Self>, state: &HookState, monitor: &Arc<Monitor>) -> Result<(), String> {
        let resource = self.hub.find(&monitor.binding).await.map_err(|error| error.to_string())?;
        self.hub.attach(monitor, &resource).await?;
        if state.is_retired() {
            // Its monitors were detached before this one was attached.
            self.hub.detach(monitor);
        }
        Ok(())
    }

    async fn set_up(self: &Arc<Self>, state: &HookState, monitor: &Arc<Monitor>) -> Result<(), String> {
        if !monitor.is_attached() {
            self.attach(state, monitor).await?;
            self.hub.start();
        }
        monitor.settled().await
    }

    /// The binding's objects are known: the run that hands them over, or the begin of its events.
    fn begin(&self, state: &HookState, monitor: &Arc<Monitor>) -> Option<Task> {
        if state.hook.config.version == ConfigVersion::V0 {
            monitor.announce_existing();
        }
        if !monitor.binding.on_synchronization {
            self.handed_over(state, monitor.index);
            return None;
        }
        let task = monitor.synchronization_task();
        if monitor.binding.wait_for_synchronization {
            state.gate().wait_for(monitor.index);
            return Some(task);
        }
        self.hooks.while_active(state, || self.queues.push([(monitor.binding.queue.clone(), task)]));
        None
    }

    /// The hook has the binding's state: events begin, as far as nothing else is waited for.
    pub(super) fn handed_over(&self, state: &HookState, index: usize) {
        let monitor = &state.monitors[index];
        let released =
            if monitor.binding.wait_for_synchronization { state.gate().done(index) } else { vec![index] };
        for index in released {
            let monitor = &state.monitors[index];
            tracing::info!(
                hook = &*monitor.hook,
                binding = monitor.binding.name,
                "Unlock kubernetes.Event tasks"
            );
            self.hooks.while_active(state, || monitor.release(self.hub.sink()));
        }
    }

    fn set_up_later(self: &Arc<Self>, state: Arc<HookState>, monitor: Arc<Monitor>, since: Instant) {
        let operator = self.clone();
        let work = async move {
            let (hook, binding) = (state.hook.name.clone(), monitor.binding.name.clone());
            while let Err(reason) = operator.set_up(&state, &monitor).await {
                tracing::debug!(hook = &*hook, binding, error = reason, "still waiting");
                operator.metrics.bindings_enabled(&hook, since.elapsed(), false);
                tokio::select! {
                    () = state.retired.cancelled() => return,
                    () = tokio::time::sleep(LOOK_AGAIN) => {}
                }
            }
            tracing::info!(hook = &*hook, binding, "binding can be served now");
            if state.monitors.iter().all(|monitor| monitor.is_attached()) {
                operator.metrics.bindings_enabled(&hook, since.elapsed(), true);
            }
            if let Some(task) = operator.begin(&state, &monitor) {
                operator.hooks.while_active(&state, || operator.queues.push([(MAIN_QUEUE.to_owned(), task)]));
            }
        };
        let stop = self.stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = work => {}
            }
        });
    }
}
