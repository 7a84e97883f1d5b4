//! Changes that a binding does not deliver yet.

use std::collections::BTreeMap;

use super::monitor::Change;
use crate::context::Identity;

/// Waiting changes: one for each object, however often it changes, so that their memory is bounded.
#[derive(Default)]
pub(super) struct Held {
    /// By watch, namespace and name; each with its position in the order of arrival.
    changes: BTreeMap<(u64, String, String), (u64, Change)>,
    arrived: u64,
}

impl Held {
    pub(super) fn push(&mut self, source: u64, mut change: Change) {
        let Identity { namespace, name, .. } = &*change.identity;
        let key = (source, namespace.clone(), name.clone());
        if let Some((_, earlier)) = self.changes.get(&key) {
            change.event = earlier.event.followed_by(change.event);
        }
        self.arrived += 1;
        self.changes.insert(key, (self.arrived, change));
    }

    /// Drops the changes of a watch.
    pub(super) fn drop_of(&mut self, source: u64) {
        self.changes.retain(|(of, ..), _| *of != source);
    }

    pub(super) fn in_order(self) -> impl Iterator<Item = Change> {
        let mut changes: Vec<(u64, Change)> = self.changes.into_values().collect();
        changes.sort_by_key(|(place, _)| *place);
        changes.into_iter().map(|(_, change)| change)
    }
}
