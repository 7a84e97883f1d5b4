//! From settings to a running operator.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Settings;
use super::active::{ActiveHooks, HookSet, HookState, first_tasks};
use super::api::ObjectApi;
use super::builder::{Builder, Handle};
use super::clients::{Clients, wait_for_api};
use super::core::Core;
use super::debug::Socket;
use super::http::{self, Shown};
use super::log_level::LogLevel;
use super::runner::Runner;
use super::schedules::Schedules;
use super::sink::QueueSink;
use super::tmp_dir;
use crate::cluster::{self, ClientError, Hub};
use crate::config::MAIN_QUEUE;
use crate::hook::{self, Hook, LoadError, Loader};
use crate::log::Logger;
use crate::metrics::{OperatorMetrics, Registry};
use crate::patch::Patcher;
use crate::queue::Queues;
use crate::webhook::server;

/// Why the operator cannot start, or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The hooks cannot be loaded.
    #[error(transparent)]
    Hooks(#[from] LoadError),
    /// There is no way to the API server.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The API server does not answer.
    #[error(
        "the Kubernetes API at {address} did not answer within {time:?}: {why}\nhint: look at the address, or give more time by --kube-timeout"
    )]
    Unreachable {
        /// Its address.
        address: String,
        /// How long it was tried.
        time: Duration,
        /// Why the last attempt failed.
        why: String,
    },
    /// The port or the directory for temporary files cannot be used.
    #[error("{what}: {why}")]
    Io {
        /// The attempted action.
        what: String,
        /// Why it failed.
        why: io::Error,
    },
    /// Another replica may act now.
    #[error("the Lease was lost, another replica takes over")]
    LeaseLost,
    /// Two hooks have one name.
    #[error("there are two hooks with the name '{0}'")]
    Name(String),
    /// A mistake in the operator.
    #[error("internal error: {0}")]
    Panic(String),
    /// A hook did not end.
    #[error("some hooks were still running {0:?} after the end was asked for")]
    Unfinished(Duration),
}

/// Starts what a builder has put together.
pub(super) async fn start(mut builder: Builder) -> Result<Handle, StartError> {
    cluster::install_crypto_provider();
    let logger = builder.take_logger();
    let Builder { mut settings, stop, hooks: mut functions, .. } = builder;
    tokio::spawn(hook::reap_orphans());
    settings.tmp_dir = absolute(&settings.tmp_dir)?;
    settings.hooks_dir = settings.hooks_dir.as_deref().map(absolute).transpose()?;
    let mut in_use = None;
    if settings.hooks_dir.is_some() || settings.webhooks.self_signed {
        let what = format!("cannot use {} for temporary files", settings.tmp_dir.display());
        let prepared = tmp_dir::prepare(&settings.tmp_dir, settings.keep_tmp_files);
        in_use = Some(prepared.map_err(|why| StartError::Io { what, why })?);
    }
    let metrics = OperatorMetrics::new(&settings.metrics_prefix);
    let clients = Clients::connect(&settings, &metrics).await?;
    let shown = Arc::new(Shown { metrics: metrics.clone(), operator: OnceLock::new() });
    let tasks = TaskTracker::new();
    // From now on, because hooks and the API server may be slow.
    if let Some(listen) = settings.listen {
        let listener = TcpListener::bind(listen).await;
        let listener = listener.map_err(cannot(format!("cannot listen on {listen}")))?;
        tasks.spawn(serve(listener, shown.clone(), stop.clone()));
    }
    let socket = bind_debug(&settings).await?;
    tracing::info!("Initialize hooks manager. Search for and load all hooks.");
    let loader = loader(&settings)?;
    let mut hooks = match &loader {
        Some(loader) => tokio::select! {
            biased;
            // A hook may take long to answer. Without hooks the operator begins and ends.
            () = stop.cancelled() => Vec::new(),
            found = loader.load(&[]) => found?,
        },
        None => Vec::new(),
    };
    hooks.append(&mut functions);
    check_names(&hooks)?;
    if hooks.iter().any(|hook| !hook.config.kubernetes.is_empty()) {
        wait_for_api(&clients, settings.kube_timeout, &stop).await?;
    }
    let core = Core::new(settings, logger, hooks, (clients, metrics), (tasks, stop));
    let core = Arc::new(core);
    let _ = shown.operator.set(core.clone());
    let running = core.clone();
    let run = tokio::spawn(async move {
        // Until the end, because hooks may run until then.
        let _in_use = in_use;
        running.run(socket, loader).await
    });
    Ok(Handle { core, run })
}

fn cannot(what: String) -> impl FnOnce(io::Error) -> StartError {
    move |why| StartError::Io { what, why }
}

fn absolute(path: &Path) -> Result<PathBuf, StartError> {
    std::path::absolute(path).map_err(cannot(format!("cannot find {}", path.display())))
}

async fn bind_debug(settings: &Settings) -> Result<Option<Socket>, StartError> {
    let Some(path) = &settings.debug_socket else { return Ok(None) };
    let what = format!("cannot listen on {} (--debug-unix-socket)", path.display());
    let socket = Socket::bind(path).map_err(cannot(what))?;
    let Some(address) = settings.debug_http else { return Ok(Some(socket)) };
    let what = format!("cannot listen on {address} (--debug-http-addr)");
    socket.and_on(address).await.map(Some).map_err(cannot(what))
}

fn loader(settings: &Settings) -> Result<Option<Loader>, LoadError> {
    let Some(dir) = &settings.hooks_dir else { return Ok(None) };
    let with_copies = settings.hooks_reload.then(|| Loader::with_copies(dir, &settings.tmp_dir));
    with_copies.unwrap_or_else(|| Loader::without_copies(dir)).map(Some)
}

fn check_names(hooks: &[Arc<Hook>]) -> Result<(), StartError> {
    let mut names: Vec<&str> = hooks.iter().map(|hook| &*hook.name).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(StartError::Name(pair[0].to_owned())),
        None => Ok(()),
    }
}

async fn serve(listener: TcpListener, shown: Arc<Shown>, stop: CancellationToken) {
    let served = match listener.into_std() {
        Ok(listener) => server::serve_plain(listener, http::router(shown), &stop).await,
        Err(error) => Err(error),
    };
    if let Err(error) = served {
        tracing::error!(error = error.to_string(), "HTTP server ended");
    }
}

impl Core {
    fn new(
        settings: Settings,
        logger: Logger,
        hooks: Vec<Arc<Hook>>,
        (clients, metrics): (Clients, OperatorMetrics),
        (tasks, stop): (TaskTracker, CancellationToken),
    ) -> Self {
        let queues = Queues::default();
        let sink = Arc::new(QueueSink(queues.clone()));
        for name in hooks.iter().flat_map(|hook| hook.config.queues()) {
            queues.get_or_create(name);
        }
        let set: HookSet =
            hooks.into_iter().map(|hook| (hook.name.clone(), HookState::new(hook, None))).collect();
        queues.get_or_create(MAIN_QUEUE).0.push(first_tasks(set.values().map(|state| &**state)));
        let hooks = ActiveHooks::default();
        hooks.replace(set);
        Self {
            runner: Runner {
                logger: logger.clone(),
                hooks_dir: settings.hooks_dir.clone(),
                tmp_dir: settings.tmp_dir.clone(),
                keep_tmp_files: settings.keep_tmp_files,
                proxy_hook_json: settings.proxy_hook_json,
                client: clients.control.clone(),
                patcher: Patcher::new(clients.patch, settings.patcher_qps, settings.patcher_burst),
                hook_metrics: Registry::default(),
                stop: stop.clone(),
                end_hooks: CancellationToken::new(),
                lease_lost: AtomicBool::new(false),
            },
            api: ObjectApi(clients.control),
            standby: AtomicBool::new(settings.lease.is_some()),
            workers: Mutex::default(),
            tasks,
            ready: AtomicBool::new(false),
            hub: Hub::new(clients.watch, sink, metrics.clone(), stop.child_token()),
            schedules: Schedules::default(),
            prepared: tokio::sync::OnceCell::new(),
            hooks,
            hooks_changed: tokio::sync::watch::Sender::default(),
            reload_failure: Mutex::default(),
            settings,
            log_level: LogLevel::new(logger),
            queues,
            metrics,
            stop,
        }
    }
}
