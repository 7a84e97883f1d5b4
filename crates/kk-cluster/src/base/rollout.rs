//! The order in which programs that run get changed settings: one host shows that they work, then a share of the others at
//! a time.

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
    /// The program runs there.
    pub runs: bool,
    /// This run changes its settings.
    pub changes: bool,
}

impl Rollout {
    /// The hosts in the order of their turns. Without a program that runs and changes there is nothing to lose, and there
    /// are no turns.
    pub(crate) fn new(program: &'static str, hosts: &[Candidate<'_>]) -> Self {
        let has_turns = hosts.iter().any(|candidate| candidate.runs && candidate.changes);
        let first = hosts.iter().find(|candidate| has_turns && candidate.changes);
        Self {
            program,
            order: hosts.iter().map(|candidate| candidate.host.name.clone()).collect(),
            first: first.map(|candidate| candidate.host.name.clone()),
        }
    }

    /// The task as a part of the turns; as it is when nothing changes.
    pub(crate) fn in_turns(&self, task: Task) -> Task {
        if self.first.is_none() {
            return task;
        }
        task.turn(Turn::new(self.program, SHARE).order(self.order.iter().cloned()))
    }

    /// Lets all hosts but the first wait until the first one works.
    pub(crate) fn after_first(&self, host: &Host, work: HostWork) -> HostWork {
        match &self.first {
            Some(first) if *first != host.name => work.needs(slots::works_on_first_slot(self.program)),
            _ => work,
        }
    }

    /// Says that the first host works, when this work is its last one.
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
