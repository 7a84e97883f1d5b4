//! A token bucket for each hook: `settings.executionMinInterval` and `executionBurst`.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Lets a run pass when there is a token; one token is added for each interval.
#[derive(Debug)]
pub struct Limiter {
    interval: Duration,
    burst: u32,
    /// When the bucket was, or will be, full.
    full_at: Mutex<Option<Instant>>,
}

impl Limiter {
    /// `burst` runs at once, then one per `interval`; no limit when that is zero.
    pub fn new(interval: Duration, burst: u32) -> Self {
        Self { interval, burst: burst.max(1), full_at: Mutex::new(None) }
    }

    /// Takes a token and waits until it counts.
    pub async fn wait(&self) {
        let now = Instant::now();
        let until = self.take(now);
        // A timer takes at least a millisecond, even if its time was already reached.
        if until > now {
            tokio::time::sleep_until(until).await;
        }
    }

    fn take(&self, now: Instant) -> Instant {
        if self.interval.is_zero() {
            return now;
        }
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let next = full_at.map_or(now, |time| time.max(now)) + self.interval;
        *full_at = Some(next);
        // A full bucket has `burst` tokens, so the bucket may be that far from being full.
        next.checked_sub(self.interval * self.burst).map_or(now, |time| time.max(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_then_one_run_per_interval() {
        let limiter = Limiter::new(Duration::from_secs(5), 2);
        let start = Instant::now();
        let mut seconds = Vec::new();
        for _ in 0..4 {
            limiter.wait().await;
            seconds.push(start.elapsed().as_secs());
        }
        tokio::time::sleep(Duration::from_mins(1)).await;
        for _ in 0..3 {
            limiter.wait().await;
            seconds.push(start.elapsed().as_secs());
        }
        assert_eq!(seconds, [0, 0, 5, 10, 70, 70, 75]);
    }

    #[tokio::test(start_paused = true)]
    async fn no_interval_is_no_limit() {
        let (limiter, start) = (Limiter::new(Duration::ZERO, 0), Instant::now());
        for _ in 0..100 {
            limiter.wait().await;
        }
        assert!(start.elapsed().is_zero());
    }
}
