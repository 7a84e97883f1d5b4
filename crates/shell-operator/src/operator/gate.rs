//! Decides which events of a hook wait for which of its runs at start.
//!
//! The events of all bindings with `waitForSynchronization` wait until each of them has been handed over; a
//! binding without it waits only for its own run.

use std::collections::BTreeSet;

/// State of a hook's bindings at start.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// Bindings whose run at start has to succeed before the events of the others begin.
    waiting: BTreeSet<usize>,
    /// Bindings whose events begin then.
    ready: Vec<usize>,
}

impl Gate {
    /// A binding whose run at start keeps the others back.
    pub(super) fn wait_for(&mut self, index: usize) {
        self.waiting.insert(index);
    }

    /// The binding needs no run at start, or it was done. Returns the bindings whose events begin now.
    pub(super) fn done(&mut self, index: usize) -> Vec<usize> {
        self.waiting.remove(&index);
        self.ready.push(index);
        if self.is_open() { std::mem::take(&mut self.ready) } else { Vec::new() }
    }

    /// Whether nothing is waited for.
    pub(super) fn is_open(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_begin_when_every_binding_has_been_handed_over() {
        let mut gate = Gate::default();
        gate.wait_for(0);
        gate.wait_for(2);
        assert!(gate.done(1).is_empty(), "a binding without a run at start waits for the others");
        assert!(gate.done(0).is_empty());
        assert_eq!(gate.done(2), [1, 0, 2]);
        assert!(gate.is_open());
        assert_eq!(gate.done(3), [3], "a binding that comes late begins at once");
    }
}
