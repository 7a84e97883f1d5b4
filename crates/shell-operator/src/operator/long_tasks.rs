//! Reports tasks that block their queues for long.
//!
//! A hook may run as long as it wants unless its configuration has an `executionTimeout`, and a task may wait for ever for its
//! turn. Both look like an operator that does nothing, so the log reports what is waited for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::queue::{Queues, dump};

/// How long a task blocks its queue before it is named for the first time.
const FIRST: Duration = Duration::from_mins(5);

/// Which tasks have been named: for each queue, how long the task had blocked it then.
#[derive(Debug, Default)]
pub(super) struct LongTasks(BTreeMap<Arc<str>, Duration>);

impl LongTasks {
    /// Looks at all queues and names what is new.
    pub(super) fn look(&mut self, queues: &Queues) {
        for queue in queues.all() {
            let Some(busy_for) = queue.busy_for().filter(|time| self.is_due(queue.name(), *time)) else {
                continue;
            };
            let state = dump(&queue);
            let Some(first) = state.tasks.first() else { continue };
            tracing::warn!(
                queue = state.name,
                task = first.description,
                status = state.status,
                seconds = busy_for.as_secs(),
                waiting = state.tasks_count - 1,
                "A task blocks its queue."
            );
        }
    }

    /// Whether a task that has blocked its queue for that long is to be named: after [`FIRST`], and each time that this has
    /// doubled.
    fn is_due(&mut self, queue: &Arc<str>, busy_for: Duration) -> bool {
        let named = self.0.get(queue).copied().filter(|named| *named <= busy_for);
        let due = busy_for >= named.map_or(FIRST, |named| named * 2);
        match (due, named) {
            (true, _) => drop(self.0.insert(queue.clone(), busy_for)),
            // Another task.
            (false, None) => drop(self.0.remove(queue)),
            (false, Some(_)) => {}
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_named_when_the_time_has_doubled_and_another_one_anew() {
        let mut tasks = LongTasks::default();
        let queue = Arc::from("main");
        let minutes = [1, 4, 5, 6, 9, 10, 19, 21, 1, 4, 5, 9, 2, 12];
        let mut due = |minutes: &u64| tasks.is_due(&queue, Duration::from_mins(*minutes));
        let named: Vec<u64> = minutes.into_iter().filter(|minutes| due(minutes)).collect();
        assert_eq!(named, [5, 10, 21, 5, 12]);
    }
}
