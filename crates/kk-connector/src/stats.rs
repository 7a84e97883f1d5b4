//! Counts what a connection costs.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::Stats;

/// The counters behind [`Stats`], shared by the sessions of one connection.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    round_trips: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    sessions: AtomicU64,
}

impl Counters {
    /// Counts an attempt.
    pub(crate) fn attempt(&self) {
        self.round_trips.fetch_add(1, Relaxed);
    }

    /// Counts the bytes of an attempt that has ended.
    pub(crate) fn moved(&self, sent: u64, received: u64) {
        self.sent.fetch_add(sent, Relaxed);
        self.received.fetch_add(received, Relaxed);
    }

    /// Counts a session.
    pub(crate) fn session(&self) {
        self.sessions.fetch_add(1, Relaxed);
    }

    /// The current counts.
    pub(crate) fn stats(&self) -> Stats {
        Stats {
            round_trips: self.round_trips.load(Relaxed),
            sent: self.sent.load(Relaxed),
            received: self.received.load(Relaxed),
            sessions: self.sessions.load(Relaxed),
        }
    }
}
