//! From settings to a running operator, and its end.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kube::Client;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::api::ObjectApi;
use super::debug::Socket;
use super::leader::Election;
use super::log_level::LogLevel;
use super::schedules::Schedules;
use super::sink::QueueSink;
use super::{HookState, Operator, Settings, http};
use crate::cluster::{self, ClientError, ClientSettings, Hub};
use crate::config::MAIN_QUEUE;
use crate::context::BindingContext;
use crate::hook::{Hook, LoadError, load_all};
use crate::log::Logger;
use crate::metrics::{OperatorMetrics, Registry};
use crate::patch::Patcher;
use crate::queue::{self, BindingType, Queues, Run, Task, Work};

/// How long running hooks and open requests may take when the operator ends.
const END: Duration = Duration::from_secs(30);

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
    /// A hook did not end.
    #[error("some hooks were still running {0:?} after the end was asked for")]
    Unfinished(Duration),
}

/// Runs an operator until `stop` is cancelled.
pub async fn start(settings: Settings, logger: Logger, stop: CancellationToken) -> Result<(), StartError> {
    let tmp = settings.tmp_dir.display().to_string();
    let failed = |what: String| move |why| StartError::Io { what, why };
    make_tmp_dir(&settings.tmp_dir).map_err(failed(format!("cannot use {tmp} for temporary files")))?;
    let metrics = OperatorMetrics::new(&settings.metrics_prefix);
    let clients = Clients::connect(&settings, &metrics).await?;
    let listen = settings.listen;
    let listener = TcpListener::bind(listen).await.map_err(failed(format!("cannot listen on {listen}")))?;
    let socket_path = &settings.debug_socket;
    let mut socket = Socket::bind(socket_path)
        .map_err(failed(format!("cannot listen on {} (--debug-unix-socket)", socket_path.display())))?;
    if let Some(address) = settings.debug_http {
        let failed = failed(format!("cannot listen on {address} (--debug-http-addr)"));
        socket = socket.and_on(address).await.map_err(failed)?;
    }
    tracing::info!("Initialize hooks manager. Search for and load all hooks.");
    let hooks = load_all(&settings.hooks_dir).await?;
    if hooks.iter().any(|hook| !hook.config.kubernetes.is_empty()) {
        wait_for_api(&clients, settings.kube_timeout, &stop).await?;
    }
    let operator = Arc::new(Operator::new(settings, logger, hooks, (clients, metrics), stop.clone()));
    operator.run(listener, socket).await
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
        let with =
            |timeout| ClientSettings { timeout: Some(timeout), limit: None, ..settings.client.clone() };
        let of_patcher = |address: &str| metrics.of_object_patcher(address);
        let of_client = |address: &str| metrics.of_client(address);
        let mut address = String::new();
        let noted = |found: &str| {
            found.clone_into(&mut address);
            of_client(found)
        };
        Ok(Self {
            watch: cluster::connect(&settings.client, noted).await?,
            patch: cluster::connect(&with(settings.patcher_timeout), of_patcher).await?,
            control: cluster::connect(&with(CONTROL), of_client).await?,
            address,
        })
    }
}

fn make_tmp_dir(dir: &Path) -> io::Result<()> {
    std::fs::create_dir_all(dir)?;
    tempfile::tempfile_in(dir).map(drop)
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

impl Operator {
    fn new(
        settings: Settings,
        logger: Logger,
        hooks: Vec<Arc<Hook>>,
        (clients, metrics): (Clients, OperatorMetrics),
        stop: CancellationToken,
    ) -> Self {
        let queues = Queues::default();
        let sink = Arc::new(QueueSink(queues.clone()));
        let first = first_tasks(&hooks);
        let bootstrap = AtomicUsize::new(first.len());
        queues.get_or_create(MAIN_QUEUE).0.push(first);
        for name in hooks.iter().flat_map(|hook| hook.config.queues()) {
            queues.get_or_create(name);
        }
        let states: HashMap<Arc<str>, HookState> =
            hooks.into_iter().map(|hook| (hook.name.clone(), HookState::new(hook))).collect();
        Self {
            api: ObjectApi(clients.control),
            standby: AtomicBool::new(false),
            hub: Hub::new(clients.watch, sink, metrics.clone(), stop.child_token()),
            patcher: Patcher::new(clients.patch, settings.patcher_qps, settings.patcher_burst),
            schedules: Schedules::default(),
            hook_metrics: Registry::default(),
            prepared: tokio::sync::OnceCell::new(),
            hooks: states,
            settings,
            log_level: LogLevel::new(logger.clone()),
            logger,
            queues,
            metrics,
            bootstrap,
            stop,
        }
    }

    async fn run(self: Arc<Self>, listener: TcpListener, socket: Socket) -> Result<(), StartError> {
        let tasks = TaskTracker::new();
        self.show(&tasks, listener, socket);
        let election = self.settings.lease.clone().map(|lease| Election::new(self.api.clone(), lease));
        let mut lost = false;
        match &election {
            None => self.act(&tasks),
            Some(election) => {
                self.standby.store(true, Ordering::Relaxed);
                if election.acquire(&self.stop).await {
                    self.standby.store(false, Ordering::Relaxed);
                    self.act(&tasks);
                    lost = !election.keep(&self.stop).await;
                    self.stop.cancel();
                }
            }
        }
        tasks.close();
        self.stop.cancelled().await;
        tracing::info!("Shutdown begins.");
        let ended = tokio::time::timeout(END, tasks.wait()).await;
        if let (Some(election), true, false) = (election, ended.is_ok(), lost) {
            election.release().await;
        }
        if lost {
            return Err(StartError::LeaseLost);
        }
        ended.map_err(|_| StartError::Unfinished(END))
    }

    /// Starts what people and probes look at.
    fn show(self: &Arc<Self>, tasks: &TaskTracker, listener: TcpListener, socket: Socket) {
        let operator = self.clone();
        tasks.spawn(async move { operator.tick().await });
        let (router, stop) = (http::router(self.clone()), self.stop.clone());
        tasks.spawn(async move {
            let served = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await;
            if let Err(error) = served {
                tracing::error!(error = error.to_string(), "HTTP server ended");
            }
        });
        let operator = self.clone();
        tasks.spawn(async move {
            if let Err(error) = socket.serve(operator).await {
                tracing::error!(error = error.to_string(), "debug endpoint ended");
            }
        });
    }

    /// Starts what runs hooks.
    fn act(self: &Arc<Self>, tasks: &TaskTracker) {
        for queue in self.queues.all() {
            tasks.spawn(queue::run(queue, Arc::new(self.clone()), self.stop.clone()));
        }
        let operator = self.clone();
        tasks.spawn(async move { operator.schedules.run(&operator.queues, &operator.stop).await });
        let operator = self.clone();
        tasks.spawn(async move { operator.serve_webhooks().await });
    }

    /// Signs of life for whoever watches the metrics.
    async fn tick(&self) {
        loop {
            self.metrics.live_tick();
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(Duration::from_secs(10)) => {}
            }
        }
    }
}

/// The first tasks of `main`: runs at start in their order, then the bindings of each hook.
fn first_tasks(hooks: &[Arc<Hook>]) -> Vec<Task> {
    let mut at_start: Vec<(i64, &Arc<Hook>)> =
        hooks.iter().filter_map(|hook| Some((hook.config.on_startup?, hook))).collect();
    // Stable: hooks of the same order run in the order of their paths.
    at_start.sort_by_key(|(order, _)| *order);
    let mut tasks: Vec<Task> = at_start.into_iter().map(|(_, hook)| startup_task(hook)).collect();
    for hook in hooks {
        if !hook.config.kubernetes.is_empty() {
            tasks.push(Task::new(hook.name.clone(), Work::EnableKubernetesBindings));
        }
        if !hook.config.schedules.is_empty() {
            tasks.push(Task::new(hook.name.clone(), Work::EnableScheduleBindings));
        }
    }
    tasks
}

fn startup_task(hook: &Hook) -> Task {
    let run = Run {
        binding_type: BindingType::OnStartup,
        contexts: vec![BindingContext::on_startup()],
        allow_failure: false,
        synchronizes: Vec::new(),
        combines: false,
    };
    Task::new(hook.name.clone(), Work::Run(run))
}
