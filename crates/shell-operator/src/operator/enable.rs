//! Sets up the watches of kubernetes bindings.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;

use super::active::HookState;
use super::core::Core;
use crate::cluster::Monitor;
use crate::config::{ConfigVersion, MAIN_QUEUE};
use crate::queue::{Outcome, Task};

/// Pauses between attempts to set up the remaining bindings: the first, and the longest.
const LOOK_AGAIN: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(10));

impl Core {
    /// Sets up the bindings of one hook and requests the runs that hand over their state.
    ///
    /// A binding that cannot be set up, because its kind does not exist yet or may not be read, is retried in the background.
    /// Bindings that also hand over its objects wait with it: no hook is run with a snapshot that is not available.
    pub(super) async fn enable_kubernetes(self: &Arc<Self>, state: &Arc<HookState>) -> Outcome {
        let started = Instant::now();
        self.prepared.get_or_init(|| self.prepare_all()).await;
        self.prepare(std::slice::from_ref(state)).await;
        self.hub.start();
        for monitor in &state.monitors {
            if let Err(reason) = self.set_up(state, monitor).await {
                let name = &monitor.binding.name;
                tracing::warn!(hook = &*monitor.hook, binding = name, error = reason, "binding has to wait");
            }
        }
        let complete = |monitor: &Arc<Monitor>| state.with_snapshots_of(monitor).all(Monitor::is_known);
        let (now, later): (Vec<_>, Vec<_>) = state.monitors.iter().partition(|monitor| complete(monitor));
        self.metrics.bindings_enabled(&state.hook.name, started.elapsed(), later.is_empty());
        if later.is_empty() {
            tracing::info!(hook = &*state.hook.name, "Kubernetes bindings for hook are enabled successfully");
        }
        // All of them first: the events of each wait for the runs of the others, whatever their order.
        for monitor in now.iter().filter(|monitor| keeps_events_back(monitor)) {
            state.gate().wait_for(monitor.index);
        }
        for monitor in later {
            self.set_up_later(state.clone(), monitor.clone(), started);
        }
        Outcome::Done(now.into_iter().filter_map(|monitor| self.begin(state, monitor)).collect())
    }

    /// Sets up the bindings of all hooks at once, so that they share their lists and list side by side.
    async fn prepare_all(self: &Arc<Self>) {
        let states: Vec<_> = self.hooks.get().values().cloned().collect();
        self.prepare(&states).await;
        self.hub.start();
    }

    /// Requests the watches of the hooks' bindings, once. They run from the next `hub.start()` on.
    ///
    /// Bindings on the namespaces with certain labels are the last: their watch begins at once, and later bindings could not
    /// share it.
    pub(super) async fn prepare(self: &Arc<Self>, states: &[Arc<HookState>]) {
        for by_labels in [false, true] {
            join_all(states.iter().map(|state| self.prepare_part(state, by_labels))).await;
        }
    }

    async fn prepare_part(self: &Arc<Self>, state: &HookState, by_labels: bool) {
        let attach = async |monitor: &Arc<Monitor>| {
            // A failure is reported when it is the hook's turn.
            let _ = self.attach(state, monitor).await;
        };
        let part = || async {
            let monitors = state.monitors.iter();
            join_all(monitors.filter(|one| one.follows_namespaces() == by_labels).map(attach)).await;
        };
        state.prepared[usize::from(by_labels)].get_or_init(part).await;
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
        monitor.settled().await?;
        monitor.set_known();
        Ok(())
    }

    /// The binding's objects are known: the run that hands them over, or the begin of its events.
    fn begin(&self, state: &HookState, monitor: &Arc<Monitor>) -> Option<Task> {
        if state.hook.config.version == ConfigVersion::V0 {
            monitor.announce_existing();
        }
        if !monitor.binding.on_synchronization {
            monitor.hold();
            self.handed_over(state, monitor.index);
            return None;
        }
        let task = monitor.synchronization_task();
        if keeps_events_back(monitor) {
            state.gate().wait_for(monitor.index);
            return Some(task);
        }
        self.hooks.while_active(state, || self.queues.push([(monitor.binding.queue.clone(), task)]));
        None
    }

    /// The hook has the binding's state: events begin, unless they wait for something else.
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
        let (operator, later) = (self.clone(), state.clone());
        let work = async move {
            let (hook, binding) = (state.hook.name.clone(), monitor.binding.name.clone());
            let mut pause = LOOK_AGAIN.0;
            while !monitor.is_known() {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LOOK_AGAIN.1);
                if let Err(reason) = operator.set_up(&state, &monitor).await {
                    tracing::debug!(hook = &*hook, binding, error = reason, "still waiting");
                    operator.metrics.bindings_enabled(&hook, since.elapsed(), false);
                }
            }
            for included in state.with_snapshots_of(&monitor) {
                included.known().await;
            }
            tracing::info!(hook = &*hook, binding, "binding can be served now");
            if state.monitors.iter().all(|monitor| monitor.is_known()) {
                operator.metrics.bindings_enabled(&hook, since.elapsed(), true);
            }
            if let Some(task) = operator.begin(&state, &monitor) {
                operator.hooks.while_active(&state, || operator.queues.push([(MAIN_QUEUE.to_owned(), task)]));
            }
        };
        self.spawn_while_active(&later, work);
    }

    /// Does `work` in the background; it ends with the operator, and with this load of the hook.
    fn spawn_while_active(&self, state: &HookState, work: impl Future<Output = ()> + Send + 'static) {
        let (stop, retired) = (self.stop.clone(), state.retired.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = retired.cancelled() => {}
                () = work => {}
            }
        });
    }

    /// Starts the schedules of a hook: each when all objects that it hands over are known.
    pub(super) fn enable_schedules(self: &Arc<Self>, state: &Arc<HookState>) {
        self.schedules.disable(&state.hook.name);
        for binding in &state.hook.config.schedules {
            let included = state.named(&binding.include_snapshots_from);
            let missing: Vec<Arc<Monitor>> =
                included.filter(|monitor| !monitor.is_known()).cloned().collect();
            if missing.is_empty() {
                self.hooks.while_active(state, || self.schedules.enable(&state.hook, binding));
                continue;
            }
            tracing::warn!(
                hook = &*state.hook.name,
                binding = binding.name,
                "the schedule has to wait for the objects that it hands over"
            );
            let (operator, later, binding) = (self.clone(), state.clone(), binding.clone());
            self.spawn_while_active(state, async move {
                for monitor in missing {
                    monitor.known().await;
                }
                operator.hooks.while_active(&later, || operator.schedules.enable(&later.hook, &binding));
            });
        }
        tracing::info!(hook = &*state.hook.name, "Schedule binding for hook enabled successfully");
    }
}

/// Whether the events of a hook's other bindings wait until this one was handed over.
fn keeps_events_back(monitor: &Monitor) -> bool {
    monitor.binding.on_synchronization && monitor.binding.wait_for_synchronization
}
