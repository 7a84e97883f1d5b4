//! Runs by the clock.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Zoned;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::config::{ConfigVersion, ScheduleBinding};
use crate::context::{BindingContext, Event};
use crate::hook::Hook;
use crate::queue::{BindingType, Queues, Run, Task, Work};
use crate::schedule::Timer;

/// Longest sleep: the clock of the machine may be changed meanwhile.
const LOOK_AT_CLOCK: Duration = Duration::from_secs(30);

/// The schedules that are enabled.
#[derive(Default)]
pub(super) struct Schedules {
    timer: Mutex<Timer<Entry>>,
    changed: Notify,
}

#[derive(Clone)]
struct Entry {
    hook: Arc<str>,
    version: ConfigVersion,
    binding: Arc<ScheduleBinding>,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.hook == other.hook && Arc::ptr_eq(&self.binding, &other.binding)
    }
}

impl Schedules {
    /// Starts a schedule of a hook.
    pub(super) fn enable(&self, hook: &Hook, binding: &ScheduleBinding) {
        let entry = Entry {
            hook: hook.name.clone(),
            version: hook.config.version,
            binding: Arc::new(binding.clone()),
        };
        let mut timer = self.timer.lock().unwrap_or_else(PoisonError::into_inner);
        timer.add(entry, binding.crontab.clone(), &Zoned::now());
        drop(timer);
        self.changed.notify_one();
    }

    /// Ends the schedules of the load of a hook that has this very name.
    pub(super) fn disable(&self, hook: &Arc<str>) {
        let mut timer = self.timer.lock().unwrap_or_else(PoisonError::into_inner);
        timer.remove(|entry| Arc::ptr_eq(&entry.hook, hook));
    }

    /// Puts runs into queues when they are due, until `stop` is cancelled.
    pub(super) async fn run(&self, queues: &Queues, stop: &CancellationToken) {
        loop {
            let changed = self.changed.notified();
            tokio::select! {
                () = stop.cancelled() => return,
                () = changed => continue,
                () = tokio::time::sleep(self.pause()) => {}
            }
            let due = self.timer.lock().unwrap_or_else(PoisonError::into_inner).take_due(&Zoned::now());
            queues.push(due.iter().map(|entry| (entry.binding.queue.clone(), entry.task())));
        }
    }

    /// Time until something is due.
    fn pause(&self) -> Duration {
        let timer = self.timer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(next) = timer.next() else { return LOOK_AT_CLOCK };
        let left = next.timestamp().duration_since(jiff::Timestamp::now());
        Duration::try_from(left).unwrap_or_default().min(LOOK_AT_CLOCK)
    }
}

impl Entry {
    fn task(&self) -> Task {
        let context = BindingContext {
            binding: self.binding.name.as_str().into(),
            event: Event::Schedule,
            group: self.binding.group.as_deref().map(Into::into),
            snapshots: self.binding.include_snapshots_from.clone().into(),
        };
        let run = Run {
            binding_type: BindingType::Schedule,
            contexts: vec![context],
            allow_failure: self.binding.allow_failure,
            synchronizes: Vec::new(),
            combines: self.version == ConfigVersion::V1,
        };
        Task::new(self.hook.clone(), Work::Run(run))
    }
}
