//! Passes lines of a script's output to a receiver that may be slower than the host.

use std::collections::VecDeque;

use tokio::sync::mpsc::{Sender, error::TrySendError};

/// Most bytes of lines in the channel: a host may send very long lines, and there may be a thousand hosts.
const IN_CHANNEL: usize = 8 << 20;

/// Passes lines to a bounded channel. Lines that do not fit wait here, and no output is read meanwhile. So at most one read's
/// output waits. A line larger than [`IN_CHANNEL`] is alone in the channel.
pub(crate) struct Lines {
    receiver: Sender<String>,
    waiting: VecDeque<String>,
    /// The sizes of the lines in the channel, and their sum.
    sent: VecDeque<usize>,
    bytes: usize,
}

impl Lines {
    pub(crate) fn new(receiver: Sender<String>) -> Self {
        Self { receiver, waiting: VecDeque::new(), sent: VecDeque::new(), bytes: 0 }
    }

    pub(super) fn push(&mut self, line: &[u8]) {
        self.waiting.push_back(String::from_utf8_lossy(line).into_owned());
        self.deliver();
    }

    /// Passes on the waiting lines; true if none is left.
    pub(super) fn deliver(&mut self) -> bool {
        self.forget_received();
        while let Some(line) = self.waiting.pop_front() {
            let size = line.len();
            if !self.sent.is_empty() && self.bytes + size > IN_CHANNEL && !self.receiver.is_closed() {
                self.waiting.push_front(line);
                return false;
            }
            match self.receiver.try_send(line) {
                Ok(()) => {
                    self.sent.push_back(size);
                    self.bytes += size;
                }
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

    /// Lines that are no longer in the channel were received.
    fn forget_received(&mut self) {
        let in_channel = self.receiver.max_capacity() - self.receiver.capacity();
        for size in self.sent.drain(..self.sent.len().saturating_sub(in_channel)) {
            self.bytes -= size;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    #[test]
    fn lines_that_wait_for_their_receiver_are_few_in_bytes_and_none_is_lost() {
        let (sender, mut receiver) = mpsc::channel(1024);
        let mut lines = Lines::new(sender);
        let mib = vec![b'x'; 1 << 20];
        (0..20).for_each(|_| lines.push(&mib));
        let mut taken = 0;
        while !lines.deliver() {
            assert_eq!(receiver.len(), 8);
            receiver.try_recv().unwrap();
            taken += 1;
        }
        assert_eq!(taken + receiver.len(), 20);
        while receiver.try_recv().is_ok() {}
        // A line may be larger than the limit for all lines: each byte that is not UTF-8 becomes three bytes.
        lines.push(&vec![0xff; 4 << 20]);
        lines.push(b"next");
        assert!(!lines.deliver());
        assert_eq!(receiver.try_recv().unwrap().len(), 12 << 20);
        assert!(lines.deliver());
        lines.push(&mib.repeat(9));
        drop(receiver);
        assert!(lines.deliver());
    }
}
