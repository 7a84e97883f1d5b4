//! Combines several waiting runs into one.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{BindingType, LONG, Run, Task, Work};
use crate::context::{BindingContext, collapse_groups, one_of_a_kind};

/// Number of contexts in one run from which on changes of the same object, and times of the same schedule, are merged.
const MOST_CONTEXTS: usize = 10_000;

/// Adds to the first task the runs of the same hook that follow it directly, and removes those.
///
/// Contexts keep their order of arrival; neighbours of one group become the last of them.
pub(super) fn combine_head(tasks: &mut VecDeque<Task>) {
    let Some((head, Work::Run(first))) = tasks.front().map(|task| (task, &task.work)) else { return };
    if !first.combines || first.stands_alone() {
        return;
    }
    let hook = head.hook.clone();
    let follows = |task: &&Task| Arc::ptr_eq(&task.hook, &hook) && task.run().is_some();
    let count = tasks.iter().skip(1).take_while(follows).count();
    let others: Vec<Task> = tasks.drain(1..=count).collect();
    let Some(Work::Run(first)) = tasks.front_mut().map(|task| &mut task.work) else { return };
    for task in others {
        if let Work::Run(run) = task.work {
            absorb(first, run);
        }
    }
    first.contexts = collapse_groups(std::mem::take(&mut first.contexts));
    // A run that fails gets here before each attempt.
    if first.contexts.len() > MOST_CONTEXTS {
        first.contexts = one_of_a_kind(std::mem::take(&mut first.contexts));
    }
}

/// Adds a task at the end of the queue. When the queue is long, the plain runs of each hook become one, and what arrives
/// later is added to that one, so that a queue that is behind does not grow.
///
/// Tasks of one hook keep their order; tasks of different hooks have none. The head may be running and is never touched.
pub(super) fn push(tasks: &mut VecDeque<Task>, task: Task) {
    if tasks.len() >= LONG {
        merge_all(tasks);
    }
    let last = tasks.iter_mut().skip(1).rev().find(|other| Arc::ptr_eq(&other.hook, &task.hook));
    match last {
        Some(last) if last.merged && is_plain(&task) => merge(last, task),
        _ => tasks.push_back(task),
    }
}

fn merge_all(tasks: &mut VecDeque<Task>) {
    let mut all = std::mem::take(tasks).into_iter();
    tasks.extend(all.next());
    for mut task in all {
        task.merged = is_plain(&task);
        let last = tasks.iter_mut().skip(1).rev().find(|other| Arc::ptr_eq(&other.hook, &task.hook));
        match last {
            Some(last) if last.merged && task.merged => merge(last, task),
            _ => tasks.push_back(task),
        }
    }
}

/// Whether a task is a run that means the same when others are added to it.
fn is_plain(task: &Task) -> bool {
    task.run().is_some_and(|run| run.synchronizes.is_empty() && run.binding_type != BindingType::OnStartup)
}

fn merge(into: &mut Task, task: Task) {
    let (Work::Run(run), Work::Run(new)) = (&mut into.work, task.work) else { return };
    run.allow_failure &= new.allow_failure;
    for context in new.contexts {
        push_collapsed(&mut run.contexts, context);
        if run.contexts.len() % MOST_CONTEXTS == 0 {
            run.contexts = one_of_a_kind(std::mem::take(&mut run.contexts));
        }
    }
}

fn absorb(first: &mut Run, run: Run) {
    first.contexts.extend(run.contexts);
    first.synchronizes.extend(run.synchronizes);
    // A run may fail only if each of its reasons may: the others must not be lost.
    first.allow_failure &= run.allow_failure;
}

fn push_collapsed(contexts: &mut Vec<BindingContext>, context: BindingContext) {
    match contexts.last_mut() {
        Some(last) if context.group.is_some() && last.group == context.group => *last = context,
        _ => contexts.push(context),
    }
}
