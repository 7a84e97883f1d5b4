//! Order in which running programs get changed settings: one host shows that the settings work, then a share of the other hosts
//! follows at a time.

use kk_config::Host;
use kk_engine::{HostWork, Most, Task, Turn};

use crate::base::slots;

/// How many hosts restart the program at once, after the first one.
const SHARE: Most = Most::Percent(25);

/// The turns of one program.
pub(crate) struct Rollout {
    program: &'static str,
    order: Vec<String>,
    first: Option<String>,
}

/// A host as its rollout sees it.
pub(crate) struct Candidate<'a> {
    pub host: &'a Host,
    /// Whether the program runs there.
    pub runs: bool,
    /// Whether this run changes its settings.
    pub changes: bool,
}

impl Rollout {
    /// The hosts in the order of their turns. If no host both runs the program and gets changed settings, no running program is
    /// at risk and there are no turns.
    pub(crate) fn new(program: &'static str, hosts: &[Candidate<'_>]) -> Self {
        let has_turns = hosts.iter().any(|candidate| candidate.runs && candidate.changes);
        let first = hosts.iter().find(|candidate| has_turns && candidate.changes);
        Self {
            program,
            order: hosts.iter().map(|candidate| candidate.host.name.clone()).collect(),
            first: first.map(|candidate| candidate.host.name.clone()),
        }
    }

    /// The task, as a part of the turns; unchanged if nothing changes.
    pub(crate) fn in_turns(&self, task: Task) -> Task {
        if self.first.is_none() {
            return task;
        }
        task.turn(Turn::new(self.program, SHARE).order(self.order.iter().cloned()))
    }

    /// Makes all hosts except the first wait until the first one works.
    pub(crate) fn after_first(&self, host: &Host, work: HostWork) -> HostWork {
        match &self.first {
            Some(first) if *first != host.name => work.needs(slots::works_on_first_slot(self.program)),
            _ => work,
        }
    }

    /// Marks this work as the last one of the first host: when it ends, the first host works.
    pub(crate) fn shows_first(&self, host: &Host, work: HostWork) -> HostWork {
        if self.first.as_ref() == Some(&host.name) {
            work.provides(slots::works_on_first_slot(self.program))
        } else {
            work
        }
    }

    /// The host that goes first. `None` when there are no turns.
    #[cfg(test)]
    pub(crate) fn first(&self) -> Option<&str> {
        self.first.as_deref()
    }
}
