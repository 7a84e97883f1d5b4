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
    pub(super) async fn enable_kubernetes(self: &Arc<Self>, state: &HookState) -> Outcome {
        let started = Instant::now();
        self.prepared.get_or_init(|| self.prepare()).await;
        let mut tasks = Vec::new();
        for monitor in &state.monitors {
            if let Err(reason) = self.set_up(monitor).await {
                let name = &monitor.binding.name;
                tracing::warn!(hook = &*monitor.hook, binding = name, error = reason, "binding has to wait");
                self.set_up_later(monitor.clone());
                continue;
            }
            tasks.extend(self.begin(state, monitor));
        }
        self.metrics.bindings_enabled(&state.hook.name, started.elapsed(), true);
        tracing::info!(hook = &*state.hook.name, "Kubernetes bindings for hook are enabled successfully");
        Outcome::Done(tasks)
    }

    /// Sets up the bindings of all hooks at once, so that they share their lists and list side by side.
    async fn prepare(self: &Arc<Self>) {
        let monitors = self.hooks.values().flat_map(|state| &state.monitors);
        join_all(monitors.map(|monitor| async move {
            // What fails is reported when it is the hook's turn.
            if let Ok(resource) = self.hub.find(&monitor.binding).await {
                let _ = self.hub.attach(monitor, &resource).await;
            }
        }))
        .await;
        self.hub.start();
    }

    async fn set_up(self: &Arc<Self>, monitor: &Arc<Monitor>) -> Result<(), String> {
        if !monitor.is_attached() {
            let resource = self.hub.find(&monitor.binding).await.map_err(|error| error.to_string())?;
            self.hub.attach(monitor, &resource).await?;
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
        self.queues.push([(monitor.binding.queue.clone(), task)]);
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
            monitor.release(self.hub.sink());
        }
    }

    fn set_up_later(self: &Arc<Self>, monitor: Arc<Monitor>) {
        let operator = self.clone();
        let work = async move {
            while let Err(reason) = operator.set_up(&monitor).await {
                tracing::debug!(
                    hook = &*monitor.hook,
                    binding = monitor.binding.name,
                    error = reason,
                    "still waiting"
                );
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            tracing::info!(
                hook = &*monitor.hook,
                binding = monitor.binding.name,
                "binding can be served now"
            );
            if let Some(state) = operator.hooks.get(&monitor.hook)
                && let Some(task) = operator.begin(state, &monitor)
            {
                operator.queues.push([(MAIN_QUEUE.to_owned(), task)]);
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
