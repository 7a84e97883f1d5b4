//! Commands for people who write hooks: no cluster needed.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use shell_operator::hook::{Labels, LineLog, Program, RunFiles, load_all, old_hooks_dir};
use shell_operator::log::{Format, Level, LogLayer, Logger};
use shell_operator::{metrics, patch};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// `shell-operator validate`
#[derive(Args)]
pub(crate) struct ValidateArgs {
    /// Directory with the hooks
    dir: PathBuf,
}

/// `shell-operator run-hook`
#[derive(Args)]
pub(crate) struct RunHookArgs {
    /// The hook
    hook: PathBuf,
    /// File with the binding contexts
    #[arg(long, value_name = "FILE")]
    context: PathBuf,
}

/// Reads the configuration of every hook and shows its mistakes.
pub(crate) fn validate(args: &ValidateArgs) -> anyhow::Result<()> {
    log_to_stderr();
    let hooks = runtime()?.block_on(load_all(&args.dir))?;
    for hook in &hooks {
        super::print(&format!("{}: {}", hook.name, hook.config.summary()));
    }
    let (number, verb) = match hooks.len() {
        1 => ("1 hook".to_owned(), "is"),
        number => (format!("{number} hooks"), "are"),
    };
    super::print(&format!("{number} {verb} fine"));
    Ok(())
}

/// Runs one hook as the operator would, but only shows the changes that the hook requests.
pub(crate) fn run_hook(args: &RunHookArgs) -> anyhow::Result<()> {
    let logger = log_to_stderr();
    let hook = std::path::absolute(&args.hook)?;
    let contexts =
        std::fs::read(&args.context).with_context(|| format!("cannot read {}", args.context.display()))?;
    serde_json::from_slice::<Vec<serde_json::Value>>(&contexts)
        .with_context(|| format!("{} is not a JSON list of binding contexts", args.context.display()))?;
    let dir = tempfile::tempdir().context("cannot make a directory for the files of the run")?;
    let (files, mut out) = RunFiles::create(dir.path(), "hook", false)?;
    std::io::Write::write_all(&mut out, &contexts)?;
    out.into_inner()?;
    let directory = hook.parent().unwrap_or(&hook);
    let mut environment: Vec<_> = files.environment().map(|(name, path)| (name, path.to_owned())).into();
    environment.extend(old_hooks_dir(directory));
    let program = Program { path: &hook, arguments: &[], directory, environment, timeout: None };
    let log = |stream| LineLog::new(logger.clone(), &Labels::new(), stream, false);
    let ended = runtime()?.block_on(program.run(log("stdout"), log("stderr"), &CancellationToken::new()))?;
    if !ended.status.success() {
        bail!("the hook failed: {}", ended.status);
    }
    show_effects(&files)
}

fn show_effects(files: &RunFiles) -> anyhow::Result<()> {
    let read = |path: &Path| std::fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    for operation in metrics::parse(&read(&files.metrics)?).map_err(anyhow::Error::msg)? {
        super::print(&format!("metric: {} {:?} {:?}", operation.name, operation.action, operation.labels));
    }
    let text = String::from_utf8(read(&files.patch)?).context("the patch file is not UTF-8")?;
    for operation in patch::parse(&text).map_err(anyhow::Error::msg)? {
        let patch::Operation { kind, namespace, name, .. } = &operation;
        super::print(&format!("patch: {} {namespace}/{kind}/{name}", operation.action.name()));
    }
    for (what, path) in [("admission response", &files.admission), ("conversion response", &files.conversion)]
    {
        let text = String::from_utf8_lossy(&read(path)?).trim().to_owned();
        if !text.is_empty() {
            super::print(&format!("{what}: {text}"));
        }
    }
    Ok(())
}

fn log_to_stderr() -> Logger {
    let logger = Logger::new(Format::Text, false, Level::Info, Box::new(std::io::stderr()));
    tracing_subscriber::registry().with(LogLayer { logger: logger.clone(), libraries: false }).init();
    logger
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the runtime")
}
