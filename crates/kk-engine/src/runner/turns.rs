//! Hands out the permits of [`crate::Turn`], and ends a key after a failure.

use std::collections::{BTreeSet, HashMap};

use tokio::sync::watch;

use crate::plan::PlannedTurns;

/// All turns of a run.
pub(super) struct Turns {
    keys: Vec<watch::Sender<Key>>,
    /// Work → its key and its host's position in the key's order.
    works: HashMap<usize, (usize, usize)>,
}

/// The state of one key.
struct Key {
    name: String,
    most: usize,
    in_order: bool,
    hosts: Vec<HostTurn>,
    /// Why no further turn may begin.
    poisoned: Option<String>,
}

/// The turn of one host.
struct HostTurn {
    begun: bool,
    /// Its works that have not ended.
    left: BTreeSet<usize>,
}

impl Turns {
    pub(super) fn new(planned: &[PlannedTurns]) -> Self {
        let mut works = HashMap::new();
        let keys = planned.iter().enumerate().map(|(key, turns)| {
            let hosts = turns.hosts.iter().enumerate().map(|(position, (_, of_host))| {
                works.extend(of_host.iter().map(|&work| (work, (key, position))));
                HostTurn { begun: false, left: of_host.iter().copied().collect() }
            });
            let (name, hosts) = (turns.key.clone(), hosts.collect());
            let key = Key { name, most: turns.most, in_order: turns.in_order, hosts, poisoned: None };
            watch::channel(key).0
        });
        Self { keys: keys.collect(), works }
    }

    /// The turn that a work belongs to: equal for the works of one host's turn.
    pub(super) fn of(&self, work: usize) -> Option<(usize, usize)> {
        self.works.get(&work).copied()
    }

    /// Waits until the turn of the work's host has begun. A work without a turn does not wait.
    ///
    /// # Errors
    /// The reason why the turn never begins.
    pub(super) async fn begin(&self, work: usize) -> Result<(), String> {
        let Some((key, host)) = self.of(work) else { return Ok(()) };
        let mut changes = self.keys[key].subscribe();
        loop {
            changes.mark_unchanged();
            let mut answer = None;
            self.keys[key].send_if_modified(|key| {
                let begun = key.hosts[host].begun;
                answer = key.try_begin(host);
                !begun && answer == Some(Ok(()))
            });
            if let Some(answer) = answer {
                return answer;
            }
            if changes.changed().await.is_err() {
                return Err("the run has ended".into());
            }
        }
    }

    /// Records that a work has ended. `failure` is the reason if the work did not finish: then no further turn of its key begins,
    /// unless the host's own turn had not begun either.
    pub(super) fn ended(&self, work: usize, failure: Option<&str>) {
        let Some((key, host)) = self.of(work) else { return };
        self.keys[key].send_modify(|key| {
            let turn = &mut key.hosts[host];
            turn.left.remove(&work);
            if let Some(failure) = failure.filter(|_| turn.begun) {
                key.poisoned.get_or_insert_with(|| failure.to_owned());
            }
        });
    }
}

impl Key {
    /// Begins the turn of a host if it may begin now; returns an error if it never may.
    fn try_begin(&mut self, host: usize) -> Option<Result<(), String>> {
        if self.hosts[host].begun {
            return Some(Ok(()));
        }
        if let Some(reason) = &self.poisoned {
            return Some(Err(format!("no other host starts its turn of \"{}\": {reason}", self.name)));
        }
        let inside = self.hosts.iter().filter(|turn| turn.begun && !turn.left.is_empty()).count();
        let is_next = self.hosts[..host].iter().all(|turn| turn.begun || turn.left.is_empty());
        if inside >= self.most || (self.in_order && !is_next) {
            return None;
        }
        self.hosts[host].begun = true;
        Some(Ok(()))
    }
}
