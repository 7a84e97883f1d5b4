//! The operator: hooks of shell-operator's library see changes, the controller works on them.
//!
//! Hooks run on the acting replica only and return at once: what they saw wakes the `controller`, which drops the pass it is
//! in and begins another. `board` collects what components do; `status` makes the object's status of it.

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

/// API version of the object that is watched.
pub const API_VERSION: &str = "installer.kubesphere.io/v1alpha1";
/// Its kind.
pub const KIND: &str = "ClusterConfiguration";
/// Its name.
pub const NAME: &str = "ks-installer";
/// Requests for lists and watches: they begin together.
const WATCHES: RateLimit = RateLimit { qps: 50.0, burst: 100 };

/// Kinds of Kubernetes whose objects are watched.
pub fn watched() -> impl Iterator<Item = (&'static str, &'static str)> {
    hooks::WATCHED.into_iter()
}

/// Writes a line for people who wait for it.
pub type Print = Arc<dyn Fn(&str) + Send + Sync>;

/// What the operator is told at start.
pub struct Options {
    /// Settings of shell-operator's part.
    pub operator: Settings,
    /// Directory of the payload.
    pub payload: PathBuf,
    /// helm's program.
    pub helm: PathBuf,
    /// Namespace of the object and of everything that is kept.
    pub namespace: String,
    /// Whether replicas elect one that acts.
    pub leader_election: bool,
    /// File that is there while everything is installed; `None` for none.
    pub running_file: Option<PathBuf>,
    /// Time after which everything is looked at, whatever the watches say.
    pub resync: Duration,
    /// What the status says of who speaks, so that whoever deployed it knows.
    pub revision: Option<String>,
    /// Pauses after failures.
    pub backoff: Backoff,
    /// Where the lines go that KubeKey, scripts and people wait for.
    pub print: Print,
    /// Ends the operator.
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
        // Nothing is read before this replica acts: another one may be changing it.
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
    // The controller ends with the operator, in the middle of whatever it does: the next one goes on.
    tokio::select! {
        result = operator.wait() => Ok(result?),
        () = work => Ok(()),
    }
}

/// The engine, as soon as the API server answers.
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

/// What an engine is opened with.
struct Opening {
    payload: Arc<Payload>,
    helm: PathBuf,
    namespace: String,
}
