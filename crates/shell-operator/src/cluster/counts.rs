//! Changes that a binding has seen.

use serde::Serialize;

use crate::config::WatchEvent;

/// The number of changes that a binding has seen, for people who search for a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// All of them.
    pub count: u64,
    /// Objects that were added.
    pub added: u64,
    /// Objects that were deleted.
    pub deleted: u64,
    /// Objects that changed.
    pub modified: u64,
    /// Objects dropped without an event. Always 0: readers of the counts expect the key.
    pub cleaned: u64,
}

impl Counts {
    pub(super) fn take(&mut self, event: WatchEvent) {
        self.count += 1;
        match event {
            WatchEvent::Added => self.added += 1,
            WatchEvent::Modified => self.modified += 1,
            WatchEvent::Deleted => self.deleted += 1,
        }
    }
}
