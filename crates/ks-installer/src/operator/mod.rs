//! Runs the operator: hooks of shell-operator's library receive changes, and the controller handles them.
//!
//! Hooks run only on the active replica and return at once. A received change wakes the `controller`, which drops its current
//! pass and begins another. `board` collects the phases of components, and `status` derives the status of the object from them.

mod announce;
mod board;
mod controller;
mod events;
mod hooks;
mod status;
mod written;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use shell_operator::cluster::RateLimit;
use shell_operator::operator::{LeaseName, Operator, Settings};
use tokio_util::sync::CancellationToken;

use crate::api::{Api, Id};
use crate::engine::{Backoff, Engine};
use crate::payload::Payload;
use crate::render::{Nodes, Renderer};

/// API version of the watched object.
pub const API_VERSION: &str = "installer.kubesphere.io/v1alpha1";
/// Kind of the watched object.
pub const KIND: &str = "ClusterConfiguration";
/// Name of the watched object.
pub const NAME: &str = "ks-installer";
/// Rate limit for lists and watches, which begin simultaneously.
const WATCHES: RateLimit = RateLimit { qps: 50.0, burst: 100 };

/// Kinds of Kubernetes whose objects are watched.
pub fn watched() -> impl Iterator<Item = (&'static str, &'static str)> {
    hooks::WATCHED.into_iter()
}

/// Writes a line for users who wait for it.
pub type Print = Arc<dyn Fn(&str) + Send + Sync>;

/// Options of the operator.
pub struct Options {
    /// Settings of shell-operator.
    pub operator: Settings,
    /// Directory of the payload.
    pub payload: PathBuf,
    /// Path of the helm binary.
    pub helm: PathBuf,
    /// Namespace of the object, and of all objects that the operator creates for itself.
    pub namespace: String,
    /// Whether only one of several replicas is active, by leader election.
    pub leader_election: bool,
    /// File that exists while all components are installed; `None` for no file.
    pub running_file: Option<PathBuf>,
    /// Time between full checks, independent of the watches.
    pub resync: Duration,
    /// Text that the status repeats, so that the deploying tool recognises a status of this operator.
    pub revision: Option<String>,
    /// Pauses after failures.
    pub backoff: Backoff,
    /// Output for the lines that KubeKey, scripts and users wait for.
    pub print: Print,
    /// Stops the operator.
    pub stop: CancellationToken,
}

/// Runs the operator until `stop` is cancelled or the Lease is lost.
pub async fn run(options: Options) -> anyhow::Result<()> {
    let payload = Payload::open(&options.payload).context("cannot use the payload")?;
    let print = options.print.clone();
    print(&format!("payload {} with KubeSphere {}", payload.version(), payload.kubesphere()));
    let mut settings = options.operator;
    settings.client.limit = Some(WATCHES);
    settings.hook_metrics_in_main = true;
    if options.leader_election {
        let lease = LeaseName { namespace: options.namespace.clone(), name: NAME.to_owned() };
        settings.lease = Some(lease);
    }
    let api = Arc::new(Api::connect(&settings.client).await?);
    let (wake, board) = (Arc::new(hooks::Wake::default()), Arc::new(board::Board::new(print.clone())));
    let config = hooks::config(&options.namespace)?;
    let builder =
        Operator::builder(settings).hook("ks-installer", config, hooks::body(wake.clone(), board.clone()));
    let operator = builder.stop_with(options.stop).build().await?;
    let work = async move {
        // This replica reads nothing before it is active, because another replica may be changing it.
        wake.first().await;
        let opening =
            Opening { payload: Arc::new(payload), helm: options.helm, namespace: options.namespace.clone() };
        let engine = open(api.clone(), opening, print.clone()).await.with_backoff(options.backoff);
        let controller = controller::Controller {
            api: api.clone(),
            engine,
            wake: wake.clone(),
            id: Id::new(API_VERSION, KIND, &options.namespace, NAME),
            board,
            announcer: announce::Announcer::new(print.clone(), options.running_file),
            resync: options.resync,
            revision: options.revision,
            written: written::Written::default(),
        };
        controller.run().await;
    };
    // The controller ends with the operator, in any state. The next one resumes its work.
    tokio::select! {
        result = operator.wait() => Ok(result?),
        () = work => Ok(()),
    }
}

/// Opens the engine as soon as the API server responds.
async fn open(api: Arc<Api>, options: Opening, print: Print) -> Engine {
    let Opening { payload, helm, namespace } = options;
    loop {
        let error = match api.version().await {
            Ok(kubernetes) => {
                let (payload, helm, nodes) = (payload.clone(), helm.clone(), Nodes::default());
                let renderer = Renderer { payload, helm, kubernetes, nodes };
                match Engine::open(api.clone(), renderer, &namespace).await {
                    Ok(engine) => return engine,
                    Err(failure) => failure.to_string(),
                }
            }
            Err(error) => error.to_string(),
        };
        print(&format!("{error}; trying again"));
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

/// Arguments to open an engine.
struct Opening {
    payload: Arc<Payload>,
    helm: PathBuf,
    namespace: String,
}
