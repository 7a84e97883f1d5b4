//! Runs of a hook: for a task of a queue, and for a question of the API server.

use std::sync::Arc;
use std::time::Duration;

use super::active::HookState;
use super::core::Core;
use super::runner::Failed;
use crate::context::BindingContext;
use crate::hook::Labels;
use crate::metrics::{RunResult, RunUsage};
use crate::queue::{BindingType, Outcome, Queue, Run, Task};

impl Core {
    /// Runs a hook for a task, and returns whether the task is done.
    pub(super) async fn run_hook(&self, state: &HookState, queue: &Queue, task: &Task, run: &Run) -> Outcome {
        let hook = &*state.hook;
        let caught_up = tokio::select! {
            biased;
            () = self.stop.cancelled() => return Outcome::Stopped,
            caught_up = state.caught_up() => caught_up,
        };
        if !caught_up {
            return Outcome::Done(Vec::new());
        }
        let binding = run.contexts.first().map_or("", |context| &context.binding);
        self.metrics.task_waited(&hook.name, binding, queue.name(), task.since.elapsed());
        let labels = labels(&hook.name, binding, run, queue.name());
        tracing::info!(
            hook = &*hook.name,
            binding,
            event = run.binding_type.as_str(),
            queue = &**queue.name(),
            "Execute hook"
        );
        let mut usage = RunUsage::default();
        let time = hook.config.settings.execution_timeout;
        let result = self.runner.attempt(state, run, &labels, time, &mut usage).await.map(drop);
        let outcome = match &result {
            Ok(()) => RunResult::Success,
            Err(Failed::Stopped) => return Outcome::Stopped,
            Err(Failed::Because(_)) if run.allow_failure => RunResult::AllowedToFail,
            Err(Failed::Because(_)) => RunResult::Failed,
        };
        self.metrics.hook_ran(&hook.name, binding, queue.name(), &usage, outcome);
        self.metrics.hook_failing(&hook.name, queue.name(), outcome == RunResult::Failed);
        if let Err(Failed::Because(error)) = result {
            let error = format!("{} FAILED: {error}", hook.name);
            if !run.allow_failure {
                tracing::error!(
                    hook = &*hook.name,
                    binding,
                    queue = &**queue.name(),
                    failedCount = task.failures + 1,
                    error,
                    "Hook failed. Will retry after delay."
                );
                return Outcome::Failed(error);
            }
            tracing::info!(
                hook = &*hook.name,
                binding,
                queue = &**queue.name(),
                error,
                "Hook failed, but allowed to fail"
            );
        } else {
            tracing::info!(
                hook = &*hook.name,
                binding,
                queue = &**queue.name(),
                "Hook executed successfully"
            );
        }
        for index in &run.synchronizes {
            self.handed_over(state, *index);
        }
        Outcome::Done(Vec::new())
    }

    /// Runs a hook for a question of the API server, outside the queues; returns the file with its answer. The API server
    /// waits for `patience`.
    ///
    /// When the API server gives up, the run continues to its end, so that it is logged and counted as any other.
    pub(super) async fn answer(
        self: &Arc<Self>,
        state: Arc<HookState>,
        kind: BindingType,
        context: BindingContext,
        patience: Duration,
    ) -> Result<String, String> {
        let binding = context.binding.clone();
        let mut asker = Asker { operator: self.clone(), hook: state.hook.name.clone(), binding, waits: true };
        let operator = self.clone();
        let work = async move { operator.run_for_answer(&state, kind, context, patience).await };
        let answer = self.tasks.spawn(work).await;
        asker.waits = false;
        answer.unwrap_or_else(|panic| Err(panic.to_string()))
    }

    async fn run_for_answer(
        &self,
        state: &HookState,
        kind: BindingType,
        context: BindingContext,
        patience: Duration,
    ) -> Result<String, String> {
        let _turn = tokio::select! {
            () = self.stop.cancelled() => return Err("the operator stops".to_owned()),
            turn = tokio::time::timeout(patience, state.turn_to_answer(&context)) => {
                turn.map_err(|_| state.why_no_turn(&context))?
            }
        };
        let hook = &*state.hook;
        let binding = context.binding.clone();
        let run = Run {
            binding_type: kind,
            contexts: vec![context],
            allow_failure: false,
            synchronizes: Vec::new(),
            combines: false,
        };
        let labels = labels(&hook.name, &binding, &run, "");
        let mut usage = RunUsage::default();
        let timeout = hook.config.settings.execution_timeout.unwrap_or(patience);
        let result = self.runner.attempt(state, &run, &labels, Some(timeout), &mut usage).await;
        let outcome = if result.is_ok() { RunResult::Success } else { RunResult::Failed };
        self.metrics.hook_ran(&hook.name, &binding, "", &usage, outcome);
        let answer = result.map_err(|failed| match failed {
            Failed::Because(error) => error,
            Failed::Stopped => "the operator stops".to_owned(),
        });
        let answer = answer.inspect_err(|error| {
            tracing::error!(hook = &*hook.name, binding = &*binding, error, "Hook failed");
        })?;
        Ok(answer.unwrap_or_default())
    }
}

/// The API server while it waits for an answer.
struct Asker {
    operator: Arc<Core>,
    hook: Arc<str>,
    binding: Arc<str>,
    waits: bool,
}

impl Drop for Asker {
    fn drop(&mut self) {
        if self.waits {
            let (hook, binding) = (&*self.hook, &*self.binding);
            tracing::warn!(hook, binding, "the API server did not wait for the hook's answer");
            self.operator.metrics.webhook_given_up(hook, binding);
        }
    }
}

fn labels(hook: &str, binding: &str, run: &Run, queue: &str) -> Labels {
    let event = run.binding_type.as_str();
    [("hook", hook), ("binding", binding), ("event", event), ("queue", queue), ("task", "HookRun")]
        .map(|(key, value)| (key.to_owned(), value.into()))
        .into()
}
