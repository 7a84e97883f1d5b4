//! Takes over hooks that change while the operator runs.
//!
//! The stamps of the files are checked every second. That costs two system calls a hook, and detects everything that a
//! notification of the kernel would miss or report in pieces: files behind links (`ConfigMap` volumes swap one link for all
//! files), directories that are mounted again, file systems without notifications.
//!
//! A new set of hooks is taken over as a whole or not at all. Unchanged hooks continue untouched. Changed hooks are treated as at
//! a start of the operator, but share the watches of the hooks that they replace, so that nothing is listed again.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::active::{HookSet, HookState, first_tasks};
use super::core::Core;
use crate::config::MAIN_QUEUE;
use crate::hook::{Hook, LoadError, Loader, Stamps, stamps};

/// Time between checks. A change is taken over when two checks see the same: files may be half written.
const LOOK: Duration = Duration::from_secs(1);
/// A check that costs much makes the time between checks longer, to this many times its CPU time: 0.05 % of a core.
const REST: u32 = 2000;
/// How often wrong hooks are tried again though they have not changed: the cause may be elsewhere.
const AGAIN: Duration = Duration::from_mins(1);
/// How long the new hooks' watches are waited for before the set is replaced.
const SHARE: Duration = Duration::from_secs(5);

/// The result of a check: the stamps, or why they could not be read.
type Seen = Result<Stamps, String>;

/// Takes over hooks that are programs.
pub(super) struct Reloader {
    pub(super) core: Arc<Core>,
    pub(super) loader: Loader,
}

impl Reloader {
    /// Takes over changes of the hooks until the operator ends.
    pub(super) async fn run(self) {
        let Some(dir) = self.core.settings.hooks_dir.clone() else { return };
        let loaded = |state: &Arc<HookState>| {
            let program = state.hook.program()?;
            Some((program.path.clone(), program.source.stamp()))
        };
        let mut tried: Seen = Ok(self.core.hooks.get().values().filter_map(loaded).collect());
        let (mut before, mut pause, mut failed_at) = (tried.clone(), LOOK, None::<Instant>);
        loop {
            tokio::select! {
                () = self.core.stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            let dir = dir.clone();
            let Ok((seen, cost)) = tokio::task::spawn_blocking(move || look(&dir)).await else { continue };
            pause = (cost * REST).max(LOOK);
            let again = failed_at.is_some_and(|time| time.elapsed() > AGAIN);
            let settled = seen == before;
            before.clone_from(&seen);
            if !settled || (seen == tried && !again) {
                continue;
            }
            tried = seen;
            let reloaded = tokio::select! {
                // A hook may take long to answer.
                () = self.core.stop.cancelled() => return,
                reloaded = self.reload() => reloaded,
            };
            failed_at = (!reloaded).then(Instant::now);
        }
    }

    /// Loads the hooks again; false when some are wrong and the old ones stay.
    async fn reload(&self) -> bool {
        let known: Vec<Arc<Hook>> = self.core.hooks.get().values().map(|state| state.hook.clone()).collect();
        let result = self.loader.load(&known).await;
        self.note_reload(result.as_ref().err());
        let Ok(mut hooks) = result else { return false };
        hooks.extend(known.into_iter().filter(|hook| hook.program().is_none()));
        self.activate(hooks).await;
        true
    }

    fn note_reload(&self, error: Option<&LoadError>) {
        self.core.metrics.hooks_reloaded(error.is_none());
        let text = error.map(ToString::to_string);
        let mut failure = self.core.reload_failure.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = text.as_ref().filter(|text| failure.as_ref() != Some(text)) {
            tracing::error!(
                error,
                "the hooks have changed and cannot be loaded: the previous hooks stay active"
            );
        }
        *failure = text;
    }

    async fn activate(&self, hooks: Vec<Arc<Hook>>) {
        let old = self.core.hooks.get();
        let (mut set, mut fresh) = (HookSet::new(), Vec::new());
        for hook in hooks {
            let earlier = old.get(&hook.name);
            let state = earlier.filter(|state| Arc::ptr_eq(&state.hook, &hook)).cloned();
            let state = state.unwrap_or_else(|| {
                let state = HookState::new(hook, earlier.map(|state| &**state));
                fresh.push(state.clone());
                state
            });
            set.insert(state.hook.name.clone(), state);
        }
        let stays = |state: &Arc<HookState>| set.values().any(|other| Arc::ptr_eq(other, state));
        let gone: Vec<Arc<HookState>> = old.values().filter(|state| !stays(state)).cloned().collect();
        if fresh.is_empty() && gone.is_empty() {
            return;
        }
        tracing::info!(
            loaded = names(&fresh),
            ended = names(&gone),
            "Hooks have changed and are taken over."
        );
        if !self.core.standby.load(Ordering::SeqCst) {
            self.share_watches(&fresh).await;
        }
        self.replace(set, &fresh, &gone);
    }

    /// Lets new hooks read watches before those that they replace give them up.
    async fn share_watches(&self, fresh: &[Arc<HookState>]) {
        let (operator, states) = (self.core.clone(), fresh.to_vec());
        let work = async move {
            operator.prepare(&states).await;
            operator.hub.start();
        };
        // The work continues when the time is over: half of it would be worse than nothing.
        let _ = tokio::time::timeout(SHARE, tokio::spawn(work)).await;
    }

    fn replace(&self, set: HookSet, fresh: &[Arc<HookState>], gone: &[Arc<HookState>]) {
        let workers = self.core.workers.lock().unwrap_or_else(PoisonError::into_inner);
        self.core.hooks.replace(set);
        for state in gone {
            state.retire();
            self.core.schedules.disable(&state.hook.name);
            self.core.metrics.forget_state(&state.hook.name);
            state.monitors.iter().for_each(|monitor| self.core.hub.detach(monitor));
        }
        self.drop_tasks(gone);
        let main = self.core.queues.get_or_create(MAIN_QUEUE).0;
        if self.core.standby.load(Ordering::SeqCst) {
            // Nothing has begun: all of it is as at a start.
            main.remove(|_| true);
            main.push(first_tasks(self.core.hooks.get().values().map(|state| &**state)));
        } else {
            main.push(first_tasks(fresh.iter().map(|state| &**state)));
        }
        for name in fresh.iter().flat_map(|state| state.hook.config.queues()) {
            self.core.queues.get_or_create(name);
        }
        drop(workers);
        self.core.start_workers();
        self.core.hooks_changed.send_replace(());
    }

    /// Drops what waits to be done for hooks that are no longer active.
    fn drop_tasks(&self, gone: &[Arc<HookState>]) {
        for queue in self.core.queues.all() {
            let dropped =
                queue.remove(|task| gone.iter().any(|state| Arc::ptr_eq(&state.hook.name, &task.hook)));
            for task in dropped.iter().filter(|task| task.failures > 0) {
                self.core.metrics.hook_failing(&task.hook, queue.name(), false);
            }
        }
    }
}

/// Checks the files, and returns the CPU time that this took.
fn look(dir: &Path) -> (Seen, Duration) {
    // Never negative; without it the time between checks stays the shortest.
    let clock = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    let begin = clock();
    let seen = stamps(dir).map_err(|error| error.to_string());
    (seen, clock().saturating_sub(begin))
}

fn names(states: &[Arc<HookState>]) -> String {
    states.iter().map(|state| &*state.hook.name).collect::<Vec<_>>().join(", ")
}
