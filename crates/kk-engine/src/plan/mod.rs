//! The plan: the remaining work, computed without touching a host.
//!
//! [`Plan::new`] evaluates every check once and owns the result; the dry run prints it and the runner executes it.

mod graph;
mod turns;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
    time::Duration,
};

use serde::Serialize;

pub(crate) use turns::PlannedTurns;

use crate::{Action, CONTROL, Change, Facts, Pipeline, PlanError, Retry, SlotKey, Task, Turn};

/// The remaining work, host by host.
pub struct Plan {
    /// Names of the modules, in order.
    pub(crate) modules: Vec<&'static str>,
    /// The steps, without their hosts.
    pub(crate) steps: Vec<Step>,
    /// The work of one task on one host each, in pipeline order. This includes work without a difference, because it provides
    /// slots.
    pub(crate) works: Vec<Work>,
    /// The facts of each host with work. The facts of all hosts would cost noticeable memory with a thousand hosts.
    pub(crate) facts: BTreeMap<String, Arc<Facts>>,
    /// The works of each host's turn.
    pub(crate) turns: Vec<PlannedTurns>,
}

/// A task without its hosts.
pub(crate) struct Step {
    /// Index into [`Plan::modules`].
    pub(crate) module: usize,
    pub(crate) name: Cow<'static, str>,
    pub(crate) title: Cow<'static, str>,
    pub(crate) retry: Retry,
    pub(crate) timeout: Duration,
    pub(crate) turn: Option<Turn>,
    pub(crate) background: bool,
    /// Only fills its slots when its needs are filled.
    pub(crate) barrier: bool,
}

/// The part of a task that one host does.
pub(crate) struct Work {
    /// Index into [`Plan::steps`].
    pub(crate) step: usize,
    pub(crate) host: String,
    /// The host that the work concerns, if another host does it.
    pub(crate) about: Option<String>,
    pub(crate) priority: u8,
    /// Only the operations with a difference.
    pub(crate) operations: Vec<Operation>,
    pub(crate) needs: Vec<SlotKey>,
    pub(crate) after: Vec<SlotKey>,
    pub(crate) provides: Vec<SlotKey>,
}

/// An action that has something to do.
pub(crate) struct Operation {
    pub(crate) action: Box<dyn Action>,
    pub(crate) changes: Vec<String>,
}

/// A task that has something to do on a host, as the dry run shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct PlannedTask {
    /// Module name.
    pub module: String,
    /// Task name.
    pub task: String,
    /// What people read.
    pub title: String,
    /// Host name.
    pub host: String,
    /// What would be done, a line an operation.
    pub changes: Vec<String>,
}

impl Plan {
    /// Compares the pipeline with the facts. A host without facts is treated as empty.
    ///
    /// # Errors
    /// A slot that no task or more than one task provides; tasks that wait for each other.
    pub fn new(pipeline: Pipeline, facts: &BTreeMap<String, Facts>) -> Result<Self, PlanError> {
        let mut plan = Self {
            modules: Vec::new(),
            steps: Vec::new(),
            works: Vec::new(),
            facts: BTreeMap::new(),
            turns: Vec::new(),
        };
        for (index, module) in pipeline.modules.into_iter().enumerate() {
            plan.modules.push(module.name);
            for task in module.tasks {
                plan.add(index, task, facts);
            }
        }
        for work in plan.works.iter().filter(|work| !work.operations.is_empty()) {
            let of_host = || Arc::new(facts.get(&work.host).cloned().unwrap_or_default());
            plan.facts.entry(work.host.clone()).or_insert_with(of_host);
        }
        plan.drop_needs_of(&pipeline.outside);
        plan.turns = turns::collect(&plan)?;
        graph::check(&plan)?;
        Ok(plan)
    }

    fn add(&mut self, module: usize, task: Task, facts: &BTreeMap<String, Facts>) {
        let nothing = Facts::default();
        let step = self.steps.len();
        self.steps.push(Step {
            module,
            name: task.name,
            title: task.title,
            retry: task.retry,
            timeout: task.timeout,
            turn: task.turn,
            background: task.background,
            barrier: task.barrier,
        });
        for (host, work) in task.hosts {
            let facts = facts.get(&host).unwrap_or(&nothing);
            let operations = work.actions.into_iter().filter_map(|action| match action.check(facts) {
                Change::None => None,
                Change::Needed(changes) => Some(Operation { action, changes }),
            });
            let operations = operations.collect();
            self.works.push(Work {
                step,
                host,
                about: work.about,
                priority: work.priority,
                operations,
                needs: work.needs,
                after: work.after,
                provides: work.provides,
            });
        }
    }

    /// Removes waits for slots of hosts outside of the command, because these are filled already.
    fn drop_needs_of(&mut self, outside: &BTreeSet<String>) {
        let provided: HashSet<SlotKey> =
            self.works.iter().flat_map(|work| work.provides.iter().cloned()).collect();
        let stays =
            |key: &SlotKey| !key.host().is_some_and(|host| outside.contains(host)) || provided.contains(key);
        for work in &mut self.works {
            work.needs.retain(stays);
            work.after.retain(stays);
        }
    }

    /// Whether everything is as wanted.
    pub fn is_empty(&self) -> bool {
        self.works.iter().all(|work| work.operations.is_empty())
    }

    /// The planned changes, by module, task and host.
    pub fn changes(&self) -> Vec<PlannedTask> {
        let busy = self.works.iter().filter(|work| !work.operations.is_empty());
        let planned = busy.map(|work| {
            let step = &self.steps[work.step];
            PlannedTask {
                module: self.modules[step.module].to_owned(),
                task: step.name.to_string(),
                title: step.title.to_string(),
                host: work.subject().to_owned(),
                changes: work.changes(),
            }
        });
        planned.collect()
    }

    /// The hosts on which something is done. This may differ from the host that the work concerns.
    pub fn hosts(&self) -> BTreeSet<String> {
        let busy = self.works.iter().filter(|work| !work.operations.is_empty());
        busy.map(|work| work.host.clone()).filter(|host| host != CONTROL).collect()
    }

    /// The number of tasks × hosts with work, by module in order; modules without work are left out.
    pub fn modules(&self) -> Vec<(String, usize)> {
        let count = |module: usize| {
            let of_module =
                |work: &&Work| self.steps[work.step].module == module && !work.operations.is_empty();
            self.works.iter().filter(of_module).count()
        };
        let counts =
            self.modules.iter().enumerate().map(|(module, name)| ((*name).to_owned(), count(module)));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// `module/task` of a work.
    pub(crate) fn path(&self, work: &Work) -> String {
        let step = &self.steps[work.step];
        format!("{}/{}", self.modules[step.module], step.name)
    }
}

impl Work {
    /// The change lines of all its operations.
    pub(crate) fn changes(&self) -> Vec<String> {
        self.operations.iter().flat_map(|operation| operation.changes.iter().cloned()).collect()
    }
}
