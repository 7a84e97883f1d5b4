//! Computes the pauses after failures. They grow, and new passes do not reset them. A new failure text means progress since the
//! last failure, so the pauses start again.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a component waits after it failed.
#[derive(Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    failed: Mutex<HashMap<String, Failures>>,
}

/// Maximum number of failure texts that are remembered per component. A component whose text always changes must not be retried
/// forever without growing pauses.
const MOST_TEXTS: usize = 100;

/// Number of quick retries before the pauses grow.
const QUICK: u32 = 4;

/// The failures of a component since its last success.
#[derive(Debug)]
struct Failures {
    /// Number of failures without progress.
    count: u32,
    next: Instant,
    texts: HashSet<String>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(Duration::from_secs(2), Duration::from_mins(5))
    }
}

impl Backoff {
    /// Creates pauses from `first` to `longest`.
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, failed: Mutex::default() }
    }

    /// Time of the next attempt for a component that failed.
    pub(super) fn next(&self, component: &str) -> Option<Instant> {
        self.lock().get(component).map(|failures| failures.next)
    }

    pub(super) fn failed(&self, component: &str, text: &str) {
        let mut failed = self.lock();
        let now = Instant::now();
        let failures = failed.entry(component.to_owned()).or_insert_with(|| Failures {
            count: 0,
            next: now,
            texts: HashSet::new(),
        });
        let is_new = failures.texts.len() < MOST_TEXTS && failures.texts.insert(text.to_owned());
        failures.count = if is_new { 0 } else { failures.count + 1 };
        // A program that has just started may refuse requests for some seconds.
        let doublings =
            if failures.count <= QUICK { failures.count.min(1) } else { failures.count - QUICK + 1 };
        let pause = self.first.saturating_mul(1 << doublings.min(16)).min(self.longest);
        failures.next = now + pause;
    }

    pub(super) fn succeeded(&self, component: &str) {
        self.lock().remove(component);
    }

    pub(super) fn forget(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Failures>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pauses in seconds after failures with these texts.
    fn pauses<'a>(backoff: &Backoff, texts: impl IntoIterator<Item = &'a str>) -> Vec<u128> {
        let pause = |text: &str| {
            backoff.failed("a", text);
            backoff.next("a").unwrap().duration_since(Instant::now()).as_millis().div_ceil(1000)
        };
        texts.into_iter().map(pause).collect()
    }

    #[test]
    fn pauses_grow_up_to_the_longest() {
        let backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(20));
        assert_eq!(pauses(&backoff, ["x"; 8]), [2, 4, 4, 4, 4, 8, 16, 20]);
        assert!(backoff.next("b").is_none());
        backoff.succeeded("a");
        assert!(backoff.next("a").is_none());
    }

    #[test]
    fn a_failure_that_was_not_seen_yet_is_no_reason_to_wait_longer() {
        let backoff = Backoff::new(Duration::from_secs(2), Duration::from_mins(5));
        assert_eq!(pauses(&backoff, ["x", "x", "y", "x", "y", "z"]), [2, 4, 2, 4, 4, 2]);
        let texts: Vec<String> = (0..200).map(|number| number.to_string()).collect();
        let all = pauses(&backoff, texts.iter().map(String::as_str));
        assert_eq!(*all.last().unwrap(), 300, "another text each time");
    }
}
