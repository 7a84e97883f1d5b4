//! The workers of one host: the idle ones and their number. A worker ends when its sender is dropped.

use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};

use super::worker::Job;

/// The channel for a worker's jobs.
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
    /// The most recently used worker is taken first, so that the others become superfluous.
    idle: Vec<Address>,
    /// The number of workers, idle or busy.
    count: usize,
    /// The number of workers that were ever started.
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

    /// Marks a worker as idle again.
    pub(super) fn put(&self, worker: Address) {
        self.lock().idle.push(worker);
    }

    /// Removes a worker that has been idle for long, unless it is the host's last worker or has just received a job.
    pub(super) fn retire(&self, number: u64) -> bool {
        let mut workers = self.lock();
        let position = workers.idle.iter().position(|idle| idle.number == number);
        let Some(position) = position.filter(|_| workers.count > 1) else { return false };
        workers.idle.remove(position);
        workers.count -= 1;
        true
    }

    /// Whether the host has more than one worker.
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
    /// The worker's number within its host.
    pub(super) fn number(&self) -> u64 {
        self.number
    }
}
