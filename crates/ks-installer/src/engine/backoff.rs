//! Pauses after failures: twice as long each time, and kept while passes come and go.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a component waits after it failed.
#[derive(Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    failed: Mutex<HashMap<String, (u32, Instant)>>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(Duration::from_secs(2), Duration::from_mins(5))
    }
}

impl Backoff {
    /// Pauses from `first` to `longest`.
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, failed: Mutex::default() }
    }

    /// When a component may be tried again, if it failed.
    pub(super) fn next(&self, component: &str) -> Option<Instant> {
        self.lock().get(component).map(|(_, next)| *next)
    }

    pub(super) fn failed(&self, component: &str) {
        let mut failed = self.lock();
        let count = failed.get(component).map_or(0, |(count, _)| count + 1);
        let pause = self.first.saturating_mul(1 << count.min(16)).min(self.longest);
        failed.insert(component.to_owned(), (count, Instant::now() + pause));
    }

    pub(super) fn succeeded(&self, component: &str) {
        self.lock().remove(component);
    }

    pub(super) fn forget(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, (u32, Instant)>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(5));
        let pause = || {
            backoff.failed("a");
            backoff.next("a").unwrap().duration_since(Instant::now()).as_millis().div_ceil(1000)
        };
        assert_eq!([pause(), pause(), pause()], [2, 4, 5]);
        assert!(backoff.next("b").is_none());
        backoff.succeeded("a");
        assert!(backoff.next("a").is_none());
    }
}
