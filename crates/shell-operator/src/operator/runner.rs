//! Running a hook's body: context in, effects out.
//!
//! [`Runner`] owns the means to apply effects: the client of object patches and the metrics of hooks.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kube::Client;
use tokio_util::sync::CancellationToken;

use super::active::HookState;
use crate::cluster::Monitor;
use crate::config::HookConfig;
use crate::context::{self, BindingContext, Event, Item, Snapshots};
use crate::hook::{
    self, Effects, Ended, Input, Labels, LineLog, ProcessError, Program, ProgramFile, RunFiles, SharedBody,
};
use crate::log::Logger;
use crate::metrics::{self, Registry, RunUsage};
use crate::patch::{self, Patcher};
use crate::queue::{BindingType, Run};

/// The state that all runs share.
pub(super) struct Runner {
    pub(super) logger: Logger,
    /// Where hooks that are programs are.
    pub(super) hooks_dir: Option<PathBuf>,
    pub(super) tmp_dir: PathBuf,
    pub(super) keep_tmp_files: bool,
    pub(super) proxy_hook_json: bool,
    /// For hooks that are functions.
    pub(super) client: Client,
    pub(super) patcher: Patcher,
    pub(super) hook_metrics: Registry,
    /// Cancelled when the operator ends.
    pub(super) stop: CancellationToken,
    /// Cancelled when the operator ends and the time for running hooks is over.
    pub(super) end_hooks: CancellationToken,
    /// Whether another replica may act now.
    pub(super) lease_lost: AtomicBool,
}

/// Why a run did not succeed.
pub(super) enum Failed {
    Because(String),
    Stopped,
}

impl Runner {
    /// Runs a hook once and applies its effects. Returns its answer to the API server.
    pub(super) async fn attempt(
        &self,
        state: &HookState,
        run: &Run,
        labels: &Labels,
        timeout: Option<Duration>,
        usage: &mut RunUsage,
    ) -> Result<Option<String>, Failed> {
        let started = Instant::now();
        let ended = match &state.hook.body {
            hook::Body::Program(program) => {
                self.run_program(state, program, run, labels, timeout, usage).await
            }
            hook::Body::Function(body) => self.run_function(state, body, run, timeout).await,
        };
        let result = match ended {
            // Another replica may act already.
            Ok(_) if self.lease_lost.load(Ordering::SeqCst) => Err(Failed::Stopped),
            Ok(effects) => self.apply(&state.hook.name, effects).await,
            Err(failed) => Err(failed),
        };
        usage.wall = started.elapsed();
        result
    }

    async fn run_program(
        &self,
        state: &HookState,
        program: &ProgramFile,
        run: &Run,
        labels: &Labels,
        timeout: Option<Duration>,
        usage: &mut RunUsage,
    ) -> Result<Effects, Failed> {
        let files = self.write_context(state, run).await?;
        let mut environment: Vec<_> = files.environment().map(|(name, path)| (name, path.to_owned())).into();
        environment.extend(self.hooks_dir.as_deref().and_then(hook::old_hooks_dir));
        let program = Program {
            path: program.source.program(),
            arguments: &[],
            directory: program.path.parent().unwrap_or(&program.path),
            environment,
            timeout,
        };
        let log = |stream| LineLog::new(self.logger.clone(), labels, stream, self.proxy_hook_json);
        let ended = program.run(log("stdout"), log("stderr"), &self.end_hooks).await;
        let ended = ended.map_err(|error| match error {
            ProcessError::Stopped => Failed::Stopped,
            other => Failed::Because(other.to_string()),
        })?;
        *usage = ended.usage;
        if !ended.status.success() {
            self.patch_after_failure(&files).await;
            return Err(Failed::Because(exit_text(&ended)));
        }
        written(&files, run.binding_type)
    }

    async fn run_function(
        &self,
        state: &HookState,
        body: &SharedBody,
        run: &Run,
        timeout: Option<Duration>,
    ) -> Result<Effects, Failed> {
        let source = HookSnapshots::of(state, run);
        let (contexts, config) = (run.contexts.clone(), state.hook.clone());
        let read = move || {
            let snapshots = read_snapshots(&source, &contexts, &config.config);
            (contexts, snapshots)
        };
        let (contexts, snapshots) = in_background(read).await?;
        let input = Input { contexts, snapshots, client: self.client.clone(), stop: self.stop.clone() };
        let time_is_up = async {
            match timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            result = body.run(input) => result.map_err(|error| Failed::Because(crate::cluster::chain(&*error))),
            () = self.end_hooks.cancelled() => Err(Failed::Stopped),
            () = time_is_up => {
                let time = timeout.unwrap_or_default();
                Err(Failed::Because(format!("it did not end within {time:?} (settings.executionTimeout)")))
            }
        }
    }

    async fn write_context(&self, state: &HookState, run: &Run) -> Result<RunFiles, Failed> {
        let (dir, keep) = (self.tmp_dir.clone(), self.keep_tmp_files);
        let (hook, contexts) = (state.hook.clone(), run.contexts.clone());
        let snapshots = HookSnapshots::of(state, run);
        let write = move || {
            let (files, mut out) = RunFiles::create(&dir, &hook.name, keep)?;
            context::write(&mut out, &contexts, hook.config.version, &snapshots)?;
            out.into_inner().map_err(io::IntoInnerError::into_error)?;
            Ok::<_, io::Error>(files)
        };
        let dir = self.tmp_dir.display();
        let cannot = |error| Failed::Because(format!("cannot write the files of the run in {dir}: {error}"));
        in_background(write).await?.map_err(cannot)
    }

    async fn apply(&self, hook: &str, effects: Effects) -> Result<Option<String>, Failed> {
        let errors = self.patcher.execute(&effects.patches).await;
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        if !errors.is_empty() {
            return Err(Failed::Because(errors.join("; ")));
        }
        for problem in metrics::apply(&self.hook_metrics, hook, &effects.metrics) {
            tracing::warn!(hook, error = problem, "metric is not applied");
        }
        Ok(effects.answer)
    }

    /// The hook failed; operations with `ignoreHookError` are done all the same.
    async fn patch_after_failure(&self, files: &RunFiles) {
        let text = std::fs::read_to_string(&files.patch).unwrap_or_default();
        // The hook failed anyway: an incomplete file is no second error.
        let Ok(mut patches) = patch::parse(&text) else { return };
        patches.retain(|operation| operation.ignore_hook_error);
        for error in self.patcher.execute(&patches).await {
            tracing::error!(error = error.to_string(), "object patch after a failed hook");
        }
    }
}

/// Does work that blocks, or takes long, outside the runtime's workers.
async fn in_background<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failed> {
    tokio::task::spawn_blocking(work).await.map_err(|panic| Failed::Because(panic.to_string()))
}

/// Snapshots of a hook's bindings at the time of a run.
struct HookSnapshots {
    monitors: Vec<Arc<Monitor>>,
    /// Bindings whose state at start this run hands over.
    starting: Vec<usize>,
}

impl HookSnapshots {
    fn of(state: &HookState, run: &Run) -> Self {
        Self { monitors: state.monitors.clone(), starting: run.synchronizes.clone() }
    }
}

impl Snapshots for HookSnapshots {
    fn items(&self, binding: &str) -> Vec<Item> {
        let Some(monitor) = self.monitors.iter().find(|monitor| monitor.binding.name == binding) else {
            return Vec::new();
        };
        if self.starting.contains(&monitor.index) { monitor.snapshot_for_start() } else { monitor.snapshot() }
    }
}

/// The snapshots that the contexts have, each read once.
fn read_snapshots(
    source: &HookSnapshots,
    contexts: &[BindingContext],
    config: &HookConfig,
) -> BTreeMap<String, Vec<Item>> {
    let mut snapshots = BTreeMap::new();
    for context in contexts {
        let own = (context.event == Event::Synchronization).then(|| context.binding.to_string());
        for name in context.snapshots.iter().cloned().chain(own) {
            if config.kubernetes.iter().any(|binding| binding.name == name) {
                snapshots.entry(name).or_insert_with_key(|name| source.items(name));
            }
        }
    }
    snapshots
}

/// Everything that a program wrote is read and checked before any of it is done.
fn written(files: &RunFiles, kind: BindingType) -> Result<Effects, Failed> {
    let metrics = metrics::parse(&read(&files.metrics)?).map_err(Failed::Because)?;
    let text = String::from_utf8(read(&files.patch)?)
        .map_err(|_| Failed::Because("got bad object patches: the file is not UTF-8".to_owned()))?;
    let patches = patch::parse(&text).map_err(Failed::Because)?;
    let answer = match kind {
        BindingType::Conversion => Some(&files.conversion),
        BindingType::Validating | BindingType::Mutating => Some(&files.admission),
        BindingType::OnStartup | BindingType::Schedule | BindingType::Kubernetes => None,
    };
    let cannot = |path: &Path, error| Failed::Because(format!("cannot read {}: {error}", path.display()));
    let answer = answer.map(|path| std::fs::read_to_string(path).map_err(|error| cannot(path, error)));
    Ok(Effects { patches, metrics, answer: answer.transpose()? })
}

fn read(path: &Path) -> Result<Vec<u8>, Failed> {
    match std::fs::read(path) {
        // A hook may remove a file that it does not want.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
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
