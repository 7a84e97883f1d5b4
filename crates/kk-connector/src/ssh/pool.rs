//! The workers of one host: which are idle, and how many there are. A worker ends when its sender is dropped.

use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};

use super::worker::Job;

/// Where a worker takes its jobs.
#[derive(Clone)]
pub(super) struct Address {
    number: u64,
    pub(super) jobs: mpsc::SyncSender<Job>,
}

/// Owns the addresses of idle workers.
#[derive(Default)]
pub(super) struct Pool(Mutex<Workers>);

#[derive(Default)]
struct Workers {
    /// The one that was used last is taken first, so that the others become superfluous.
    idle: Vec<Address>,
    /// All of them, idle or busy.
    count: usize,
    /// How many there ever were.
    started: u64,
}

impl Pool {
    /// An idle worker, if there is one.
    pub(super) fn take(&self) -> Option<Address> {
        self.lock().idle.pop()
    }

    /// Counts a new, busy worker.
    pub(super) fn add(&self, jobs: mpsc::SyncSender<Job>) -> Address {
        let mut workers = self.lock();
        workers.count += 1;
        workers.started += 1;
        Address { number: workers.started, jobs }
    }

    /// A worker is idle again.
    pub(super) fn put(&self, worker: Address) {
        self.lock().idle.push(worker);
    }

    /// Removes a worker that has been idle for long, unless it is the last of the host or has just got a job.
    pub(super) fn retire(&self, number: u64) -> bool {
        let mut workers = self.lock();
        let position = workers.idle.iter().position(|idle| idle.number == number);
        let Some(position) = position.filter(|_| workers.count > 1) else { return false };
        workers.idle.remove(position);
        workers.count -= 1;
        true
    }

    /// Whether the host has another worker beside one.
    pub(super) fn has_spare(&self) -> bool {
        self.lock().count > 1
    }

    /// Removes all idle workers.
    pub(super) fn clear(&self) {
        let mut workers = self.lock();
        workers.count -= workers.idle.len();
        workers.idle.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Workers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Address {
    /// The worker's number among those of its host.
    pub(super) fn number(&self) -> u64 {
        self.number
    }
}
