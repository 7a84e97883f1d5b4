//! From settings to a running operator, and its end.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use kube::Client;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Settings;
use super::active::{ActiveHooks, HookSet, HookState, first_tasks};
use super::api::ObjectApi;
use super::builder::{Builder, Handle};
use super::core::Core;
use super::debug::Socket;
use super::http::{self, Shown};
use super::leader::Election;
use super::log_level::LogLevel;
use super::long_tasks::LongTasks;
use super::reload::Reloader;
use super::runner::Runner;
use super::schedules::Schedules;
use super::sink::QueueSink;
use super::tmp_dir;
use super::webhooks::Webhooks;
use crate::cluster::{self, ClientError, ClientSettings, Hub};
use crate::config::MAIN_QUEUE;
use crate::hook::{self, Hook, LoadError, Loader};
use crate::log::Logger;
use crate::metrics::{OperatorMetrics, Registry};
use crate::patch::Patcher;
use crate::queue::{self, Queues};
use crate::webhook::server;

/// How long what is no hook may take when the operator ends.
const MARGIN: Duration = Duration::from_secs(5);

/// How long they may take when the Lease is lost; see `leader` for the sum of the times.
const LOST_END: Duration = Duration::from_secs(3);

/// Longest time of a request for the Lease or the webhooks.
const CONTROL: Duration = Duration::from_secs(10);

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
        /// What was tried.
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
    // From now on, because hooks and the API server may take their time.
    if let Some(listen) = settings.listen {
        let listener = TcpListener::bind(listen).await;
        let listener = listener.map_err(cannot(format!("cannot listen on {listen}")))?;
        tasks.spawn(serve(listener, shown.clone(), stop.clone()));
    }
    let socket = bind_debug(&settings).await?;
    tracing::info!("Initialize hooks manager. Search for and load all hooks.");
    let loader = loader(&settings)?;
    let mut hooks = match &loader {
        Some(loader) => loader.load(&[]).await?,
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

/// Clients of the API server; they differ in what they may do at once.
struct Clients {
    /// Lists and watches.
    watch: Client,
    /// Changes objects; the patcher itself limits how many it asks for.
    patch: Client,
    /// The Lease and the webhooks: few requests, which must not wait behind those of watches.
    control: Client,
    /// Address of the API server.
    address: String,
}

impl Clients {
    async fn connect(settings: &Settings, metrics: &OperatorMetrics) -> Result<Self, ClientError> {
        let with = |timeout, retry| ClientSettings {
            timeout: Some(timeout),
            limit: None,
            retry,
            ..settings.client.clone()
        };
        let of_patcher = |address: &str| metrics.of_object_patcher(address);
        let of_client = |address: &str| metrics.of_client(address);
        let mut address = String::new();
        let noted = |found: &str| {
            found.clone_into(&mut address);
            of_client(found)
        };
        Ok(Self {
            watch: cluster::connect(&settings.client, noted).await?,
            patch: cluster::connect(&with(settings.patcher_timeout, true), of_patcher).await?,
            control: cluster::connect(&with(CONTROL, false), of_client).await?,
            address,
        })
    }
}

/// Waits until the API server answers anything at all.
async fn wait_for_api(
    clients: &Clients,
    timeout: Option<Duration>,
    stop: &CancellationToken,
) -> Result<(), StartError> {
    let (started, mut pause) = (Instant::now(), Duration::from_millis(500));
    loop {
        let error = match clients.control.apiserver_version().await {
            Ok(_) | Err(kube::Error::Api(_)) => return Ok(()),
            Err(error) => cluster::explain(&error),
        };
        if let Some(timeout) = timeout
            && started.elapsed() + pause > timeout
        {
            let address = clients.address.clone();
            return Err(StartError::Unreachable { address, time: timeout, why: error });
        }
        tracing::warn!(error, "the Kubernetes API at {} does not answer, trying again", clients.address);
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(pause) => {}
        }
        pause = (pause * 2).min(Duration::from_secs(5));
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

    async fn run(self: Arc<Self>, socket: Option<Socket>, loader: Option<Loader>) -> Result<(), StartError> {
        self.start_endpoints(socket, loader);
        let election = self.settings.lease.clone().map(|lease| Election::new(self.api.clone(), lease));
        let mut lost = false;
        match &election {
            None => self.act(),
            Some(election) => {
                if let Some(since) = election.acquire(&self.stop).await {
                    self.act();
                    lost = !election.keep(since, &self.stop).await;
                    self.runner.lease_lost.store(lost, Ordering::SeqCst);
                    self.stop.cancel();
                }
            }
        }
        self.stop.cancelled().await;
        tracing::info!("Shutdown begins.");
        self.tasks.close();
        if lost {
            return self.end_now().await;
        }
        let ended = self.wait_for_the_end().await;
        if let (Some(election), true) = (election, ended.is_ok()) {
            election.release().await;
        }
        ended
    }

    /// Lets running hooks come to their end; when the time for that is nearly over, they are told to end.
    async fn wait_for_the_end(&self) -> Result<(), StartError> {
        let time = self.settings.shutdown_timeout;
        let end_hooks = async {
            tokio::time::sleep(time.saturating_sub(hook::GRACE)).await;
            self.runner.end_hooks.cancel();
            tokio::time::sleep(time.min(hook::GRACE) + MARGIN).await;
        };
        tokio::select! {
            () = self.tasks.wait() => Ok(()),
            () = end_hooks => {
                hook::kill_all();
                Err(StartError::Unfinished(time + MARGIN))
            }
        }
    }

    /// Another replica acts soon: hooks have a moment, and what they asked for is not done any more.
    async fn end_now(&self) -> Result<(), StartError> {
        self.runner.end_hooks.cancel();
        let _ = tokio::time::timeout(LOST_END, self.tasks.wait()).await;
        hook::kill_all();
        Err(StartError::LeaseLost)
    }

    /// Starts what goes on whether this replica acts or not: metrics, the debug endpoint, and looking for new hooks.
    fn start_endpoints(self: &Arc<Self>, socket: Option<Socket>, loader: Option<Loader>) {
        let operator = self.clone();
        self.tasks.spawn(async move { operator.tick().await });
        if let Some(loader) = loader.filter(|_| self.settings.hooks_reload) {
            self.tasks.spawn(Reloader { core: self.clone(), loader }.run());
        }
        let Some(socket) = socket else { return };
        let operator = self.clone();
        self.tasks.spawn(async move {
            if let Err(error) = socket.serve(operator).await {
                tracing::error!(error = error.to_string(), "debug endpoint ended");
            }
        });
    }

    /// Starts what runs hooks.
    fn act(self: &Arc<Self>) {
        {
            let _workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
            self.standby.store(false, Ordering::SeqCst);
        }
        self.start_workers();
        let operator = self.clone();
        self.tasks.spawn(async move { operator.schedules.run(&operator.queues, &operator.stop).await });
        let operator = self.clone();
        self.tasks.spawn(Webhooks::new(operator).run());
    }

    /// Gives each queue a worker that has none, unless another replica acts.
    pub(super) fn start_workers(self: &Arc<Self>) {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        if self.standby.load(Ordering::SeqCst) {
            return;
        }
        for queue in self.queues.all() {
            if workers.insert(queue.name().clone()) {
                self.tasks.spawn(queue::run(queue, Arc::new(self.clone()), self.stop.clone()));
            }
        }
    }

    /// Signs of life for whoever watches the metrics, and of what does not go on.
    async fn tick(&self) {
        let mut long_tasks = LongTasks::default();
        loop {
            self.metrics.live_tick();
            long_tasks.look(&self.queues);
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(Duration::from_secs(10)) => {}
            }
        }
    }
}
