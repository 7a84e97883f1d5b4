//! The thread that reads all watches.
//!
//! No filter sees most changes in a cluster. Their cost is mostly waking up: a connection, its watch and a worker thread each
//! time, up to three times an event. On one thread a wake-up serves both, and after events without effect the thread waits a
//! moment before it reads more, so that one wake-up serves several events. An event that a binding sees is never held back by
//! itself: the thread waits only after events that were not seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

/// How long the thread waits for more events. Each of them saves a wake-up, which costs more than the work for an event that no
/// binding sees. An event that a binding sees, among unseen ones, is delayed by at most this time.
const PAUSE: Duration = Duration::from_millis(5);

/// Where watches run. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    handle: Handle,
    pace: Pace,
}

/// Whether the reader may wait for more events.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace(Arc<AtomicBool>);

impl Pace {
    /// An event was taken that no binding sees.
    pub(super) fn unseen(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// An event was taken that a binding may see.
    pub(super) fn seen(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    fn wait(&self) {
        if self.0.swap(false, Ordering::Relaxed) {
            std::thread::sleep(PAUSE);
        }
    }
}

impl Reader {
    /// Starts the thread; it ends with `stop`. Needs a runtime, which is used when there can be no thread.
    pub(super) fn start(stop: CancellationToken) -> Self {
        let pace = Pace::default();
        let parked = pace.clone();
        let runtime =
            Builder::new_current_thread().enable_all().on_thread_park(move || parked.wait()).build();
        let started = runtime.and_then(|runtime| {
            let handle = runtime.handle().clone();
            let run = move || runtime.block_on(stop.cancelled_owned());
            std::thread::Builder::new().name("watches".to_owned()).spawn(run).map(|_| handle)
        });
        let handle = started.unwrap_or_else(|error| {
            tracing::warn!(error = error.to_string(), "cannot start a thread for watches");
            Handle::current()
        });
        Self { handle, pace }
    }

    /// Runs a watch to its end.
    pub(super) fn spawn(&self, watch: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(watch);
    }

    /// For watches, to report whether a binding sees their events.
    pub(super) fn pace(&self) -> Pace {
        self.pace.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn only_events_that_nobody_sees_are_waited_after() {
        let pace = Pace::default();
        let waits = || {
            let begin = Instant::now();
            pace.wait();
            begin.elapsed() >= PAUSE
        };
        pace.unseen();
        assert!(waits());
        assert!(!pace.0.load(Ordering::Relaxed), "once");
        pace.unseen();
        pace.seen();
        assert!(!pace.0.load(Ordering::Relaxed));
    }

    #[tokio::test]
    async fn watches_end_with_the_operator() {
        let stop = CancellationToken::new();
        let reader = Reader::start(stop.clone());
        let (ended, wait) = tokio::sync::oneshot::channel::<()>();
        reader.spawn(async move {
            std::future::pending::<()>().await;
            drop(ended);
        });
        stop.cancel();
        assert!(wait.await.is_err());
    }
}
