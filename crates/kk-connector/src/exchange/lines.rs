//! Lines of a script's output on their way to a receiver that may be slower than the host.

use std::collections::VecDeque;

use tokio::sync::mpsc::{Sender, error::TrySendError};

/// Hands lines to a bounded channel. Lines for which it has no room wait here, and no output is read meanwhile: what waits is
/// at most what was received at once.
pub(crate) struct Lines {
    receiver: Sender<String>,
    waiting: VecDeque<String>,
}

impl Lines {
    pub(crate) fn new(receiver: Sender<String>) -> Self {
        Self { receiver, waiting: VecDeque::new() }
    }

    pub(super) fn push(&mut self, line: &[u8]) {
        self.waiting.push_back(String::from_utf8_lossy(line).into_owned());
        self.deliver();
    }

    /// Hands out what waits; true when nothing is left.
    pub(super) fn deliver(&mut self) -> bool {
        while let Some(line) = self.waiting.pop_front() {
            match self.receiver.try_send(line) {
                Ok(()) => {}
                Err(TrySendError::Full(line)) => {
                    self.waiting.push_front(line);
                    return false;
                }
                // A receiver that is gone is no reason to end the script.
                Err(TrySendError::Closed(_)) => self.waiting.clear(),
            }
        }
        true
    }
}
