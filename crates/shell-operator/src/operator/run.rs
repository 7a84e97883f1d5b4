//! One run of a hook: context in, effects out.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{HookState, Operator};
use crate::cluster::Monitor;
use crate::context::{self, BindingContext, Item, Snapshots};
use crate::hook::{Ended, Labels, LineLog, ProcessError, Program, RunFiles, old_hooks_dir};
use crate::metrics::{self, RunResult, RunUsage};
use crate::patch;
use crate::queue::{BindingType, Outcome, Queue, Run, Task};

/// Snapshots of a hook's bindings at the time of a run.
struct HookSnapshots {
    monitors: Vec<Arc<Monitor>>,
    /// Bindings whose state at start this run hands over.
    starting: Vec<usize>,
}

impl Snapshots for HookSnapshots {
    fn items(&self, binding: &str) -> Vec<Item> {
        let Some(monitor) = self.monitors.iter().find(|monitor| monitor.binding.name == binding) else {
            return Vec::new();
        };
        if self.starting.contains(&monitor.index) { monitor.snapshot_for_start() } else { monitor.snapshot() }
    }
}

impl Operator {
    /// Runs a hook for a task, and says whether the task is done.
    pub(super) async fn run_hook(&self, state: &HookState, queue: &Queue, task: &Task, run: &Run) -> Outcome {
        let hook = &*state.hook;
        if self.stop.is_cancelled() {
            return Outcome::Stopped;
        }
        if state.is_retired() {
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
        let result = self.attempt(state, run, &labels, &mut usage, time).await.map(drop);
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

    async fn attempt(
        &self,
        state: &HookState,
        run: &Run,
        labels: &Labels,
        usage: &mut RunUsage,
        timeout: Option<Duration>,
    ) -> Result<RunFiles, Failed> {
        let started = Instant::now();
        let result = self.run_program(state, run, labels, usage, timeout).await;
        usage.wall = started.elapsed();
        result
    }

    async fn run_program(
        &self,
        state: &HookState,
        run: &Run,
        labels: &Labels,
        usage: &mut RunUsage,
        timeout: Option<Duration>,
    ) -> Result<RunFiles, Failed> {
        let files = self.write_context(state, run).await?;
        let hook = &*state.hook;
        let mut environment: Vec<_> = files.environment().map(|(name, path)| (name, path.to_owned())).into();
        environment.extend(old_hooks_dir(&self.settings.hooks_dir));
        let program = Program {
            path: hook.source.program(),
            arguments: &[],
            directory: hook.path.parent().unwrap_or(&hook.path),
            environment,
            timeout,
        };
        let log = |stream| LineLog::new(self.logger.clone(), labels, stream, self.settings.proxy_hook_json);
        let ended =
            program.run(log("stdout"), log("stderr"), &self.end_hooks).await.map_err(
                |error| match error {
                    ProcessError::Stopped => Failed::Stopped,
                    other => Failed::Because(other.to_string()),
                },
            )?;
        *usage = ended.usage;
        if self.lease_lost.load(Ordering::SeqCst) {
            // Another replica may act already.
            return Err(Failed::Stopped);
        }
        if !ended.status.success() {
            self.patch_after_failure(&files).await;
            return Err(Failed::Because(exit_text(&ended)));
        }
        self.apply(&hook.name, &files).await?;
        Ok(files)
    }

    /// Runs a hook for a question of the API server, outside the queues; returns the file with its answer. The API server
    /// waits for `patience`.
    ///
    /// When the API server gives up, the run goes on to its end, so that it is logged and counted as any other.
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
        let result = self.attempt(state, &run, &labels, &mut usage, Some(timeout)).await;
        let outcome = if result.is_ok() { RunResult::Success } else { RunResult::Failed };
        self.metrics.hook_ran(&hook.name, &binding, "", &usage, outcome);
        let files = result.map_err(|failed| match failed {
            Failed::Because(error) => error,
            Failed::Stopped => "the operator stops".to_owned(),
        });
        let files = files.inspect_err(|error| {
            tracing::error!(hook = &*hook.name, binding = &*binding, error, "Hook failed");
        })?;
        let path = if kind == BindingType::Conversion { &files.conversion } else { &files.admission };
        std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
    }

    async fn write_context(&self, state: &HookState, run: &Run) -> Result<RunFiles, Failed> {
        let (dir, keep) = (self.settings.tmp_dir.clone(), self.settings.keep_tmp_files);
        let (hook, contexts) = (state.hook.clone(), run.contexts.clone());
        let snapshots =
            HookSnapshots { monitors: state.monitors.clone(), starting: run.synchronizes.clone() };
        let write = move || {
            let (files, mut out) = RunFiles::create(&dir, &hook.name, keep)?;
            context::write(&mut out, &contexts, hook.config.version, &snapshots)?;
            out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            Ok::<_, std::io::Error>(files)
        };
        let written =
            tokio::task::spawn_blocking(write).await.map_err(|panic| Failed::Because(panic.to_string()))?;
        let dir = self.settings.tmp_dir.display();
        written
            .map_err(|error| Failed::Because(format!("cannot write the files of the run in {dir}: {error}")))
    }

    /// Everything that the hook wrote is read and checked before any of it is done.
    async fn apply(&self, hook: &str, files: &RunFiles) -> Result<(), Failed> {
        let operations = metrics::parse(&read(&files.metrics)?).map_err(Failed::Because)?;
        let text = String::from_utf8(read(&files.patch)?)
            .map_err(|_| Failed::Because("got bad object patches: the file is not UTF-8".to_owned()))?;
        let patches = patch::parse(&text).map_err(Failed::Because)?;
        let errors: Vec<String> =
            self.patcher.execute(&patches).await.iter().map(ToString::to_string).collect();
        if !errors.is_empty() {
            return Err(Failed::Because(errors.join("; ")));
        }
        for problem in metrics::apply(&self.hook_metrics, hook, &operations) {
            tracing::warn!(hook, error = problem, "metric is not applied");
        }
        Ok(())
    }

    /// The hook failed; what it marked with `ignoreHookError` is done all the same.
    async fn patch_after_failure(&self, files: &RunFiles) {
        let text = std::fs::read_to_string(&files.patch).unwrap_or_default();
        // The hook failed anyway: a file that is not whole is no second error.
        let Ok(mut patches) = patch::parse(&text) else { return };
        patches.retain(|operation| operation.ignore_hook_error);
        for error in self.patcher.execute(&patches).await {
            tracing::error!(error = error.to_string(), "object patch after a failed hook");
        }
    }
}

/// The API server while it waits for an answer.
struct Asker {
    operator: Arc<Operator>,
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

/// Why a run did not succeed.
enum Failed {
    Because(String),
    Stopped,
}

fn read(path: &std::path::Path) -> Result<Vec<u8>, Failed> {
    match std::fs::read(path) {
        // A hook may remove a file that it does not want.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        result => result.map_err(|error| Failed::Because(format!("cannot read {}: {error}", path.display()))),
    }
}

fn exit_text(ended: &Ended) -> String {
    if !ended.stderr.is_empty() {
        return ended.stderr.clone();
    }
    match ended.status.code() {
        Some(code) => format!("cmd run: exit status {code}"),
        None => format!("cmd run: {}", ended.status),
    }
}

fn labels(hook: &str, binding: &str, run: &Run, queue: &str) -> Labels {
    let event = run.binding_type.as_str();
    [("hook", hook), ("binding", binding), ("event", event), ("queue", queue), ("task", "HookRun")]
        .map(|(key, value)| (key.to_owned(), value.into()))
        .into()
}
