//! Making one run of several that wait behind each other.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Run, Task, Work};
use crate::context::{BindingContext, collapse_groups};

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
}

/// Adds `task` to the last one waiting when both are plain runs of one hook, so that a long queue stays short.
/// Never touches the head, which may be running, and never jumps over another hook's task.
pub(super) fn merge_into_last(tasks: &mut VecDeque<Task>, task: &Task) -> bool {
    if tasks.len() < 2 {
        return false;
    }
    let (Some(last), Work::Run(new)) = (tasks.back_mut(), &task.work) else { return false };
    let Work::Run(run) = &mut last.work else { return false };
    let plain = |run: &Run| run.combines && run.synchronizes.is_empty();
    if !Arc::ptr_eq(&last.hook, &task.hook) || !plain(run) || !plain(new) {
        return false;
    }
    run.allow_failure &= new.allow_failure;
    for context in &new.contexts {
        push_collapsed(&mut run.contexts, context.clone());
    }
    true
}

fn absorb(first: &mut Run, run: Run) {
    first.contexts.extend(run.contexts);
    first.synchronizes.extend(run.synchronizes);
    // Only a run in which every reason may fail is allowed to: the others must not be lost.
    first.allow_failure &= run.allow_failure;
}

fn push_collapsed(contexts: &mut Vec<BindingContext>, context: BindingContext) {
    match contexts.last_mut() {
        Some(last) if context.group.is_some() && last.group == context.group => *last = context,
        _ => contexts.push(context),
    }
}
