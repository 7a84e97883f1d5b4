//! Builds an operator: hooks in Rust, a directory with hooks that are programs, or both.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Settings;
use super::core::Core;
use super::start::{self, StartError};
use crate::config::HookConfig;
use crate::hook::{Body, Hook, HookBody};
use crate::limiter::Limiter;
use crate::log::{Format, Level, Logger};
use crate::queue::{QueueDump, dump};

/// Runs hooks on events of a Kubernetes cluster.
///
/// ```no_run
/// use shell_operator::config::{HookConfig, Kubernetes};
/// use shell_operator::hook::{Effects, Input};
/// use shell_operator::operator::{Operator, Settings};
///
/// async fn maps(input: Input) -> anyhow::Result<Effects> {
///     let names: Vec<String> = input.objects("maps")?;
///     println!("{} maps", names.len());
///     Ok(Effects::new())
/// }
///
/// # async fn example() -> anyhow::Result<()> {
/// let binding = Kubernetes::new("v1", "ConfigMap")
///     .name("maps")
///     .jq_filter(".metadata.name")
///     .include_snapshots_from(&["maps"]);
/// let config = HookConfig::builder().kubernetes(binding).build()?;
/// let operator = Operator::builder(Settings::default()).hook("maps", config, maps).build().await?;
/// operator.wait().await?;
/// # Ok(())
/// # }
/// ```
pub struct Operator(());

impl Operator {
    /// Begins to put an operator together.
    pub fn builder(settings: Settings) -> Builder {
        Builder { settings, logger: None, stop: CancellationToken::new(), hooks: Vec::new() }
    }
}

/// An operator that is being put together.
pub struct Builder {
    pub(super) settings: Settings,
    pub(super) logger: Option<Logger>,
    pub(super) stop: CancellationToken,
    pub(super) hooks: Vec<Arc<Hook>>,
}

impl Builder {
    /// Adds a hook that is a Rust function. Its name must differ from the names of all other hooks.
    #[must_use]
    pub fn hook(mut self, name: impl Into<Arc<str>>, config: HookConfig, body: impl HookBody) -> Self {
        let limiter = Limiter::new(config.settings.execution_min_interval, config.settings.execution_burst);
        let body = Body::Function(Arc::new(body));
        self.hooks.push(Arc::new(Hook { name: name.into(), config, limiter, body }));
        self
    }

    /// Runs the programs in this directory as hooks too.
    #[must_use]
    pub fn hooks_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.settings.hooks_dir = Some(dir.into());
        self
    }

    /// Destination of the output of hooks that are programs; by default stderr. Messages of the operator itself are events of
    /// `tracing`, for any subscriber.
    #[must_use]
    pub fn logger(mut self, logger: Logger) -> Self {
        self.logger = Some(logger);
        self
    }

    /// Ends the operator when this is cancelled.
    #[must_use]
    pub fn stop_with(mut self, stop: CancellationToken) -> Self {
        self.stop = stop;
        self
    }

    /// Loads the hooks in the directory, connects to the API server, and starts the operator.
    pub async fn build(self) -> Result<Handle, StartError> {
        start::start(self).await
    }

    pub(super) fn take_logger(&mut self) -> Logger {
        let default = || Logger::new(Format::Text, true, Level::Info, Box::new(std::io::stderr()));
        self.logger.take().unwrap_or_else(default)
    }
}

/// A running operator. It continues when this is dropped.
pub struct Handle {
    pub(super) core: Arc<Core>,
    pub(super) run: JoinHandle<Result<(), StartError>>,
}

impl Handle {
    /// Whether everything of the start has been done, the runs with the state at start included.
    pub fn is_ready(&self) -> bool {
        self.core.is_ready()
    }

    /// The tasks that wait in the queues: `main` first, the others by name.
    pub fn queues(&self) -> Vec<QueueDump> {
        self.core.queues.all().iter().map(|queue| dump(queue)).collect()
    }

    /// Begins to end the operator: running hooks may finish, nothing new begins.
    pub fn stop(&self) {
        self.core.stop.cancel();
    }

    /// Waits until the operator has ended.
    pub async fn wait(self) -> Result<(), StartError> {
        self.run.await.unwrap_or_else(|panic| Err(StartError::Panic(panic.to_string())))
    }
}
