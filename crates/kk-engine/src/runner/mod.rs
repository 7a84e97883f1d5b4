//! Runs a plan: one lane for each host, plus background tasks, with one common end.
//!
//! [`run`] owns the run. `shared` is the state that its lanes share, `lane` walks through the works of one lane in order,
//! `select` decides which scripts are sent together, `batch` is the script of a round trip, `execute` carries it out, and
//! `tracker` counts and reports.

mod batch;
mod execute;
mod host_lock;
mod lane;
mod queue;
mod select;
mod shared;
mod tracker;
mod turns;

use std::{collections::BTreeMap, panic, sync::Arc};

use kk_connector::Connection;
use serde::Serialize;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{EventKind, EventSender, Failure, Plan};
pub(crate) use batch::last_lines;
pub use host_lock::{Owner, release};
use shared::Shared;

/// How a plan is run.
#[derive(Clone)]
pub struct Options {
    /// The owner of the run. A host has one owner at a time; without an owner, hosts are not locked.
    pub owner: Option<Owner>,
    /// Another plan of the same run may follow: hosts are not released at the end of this plan, but by [`release`], or after two
    /// minutes without an action of the run there.
    pub more: bool,
    /// Drops a host that fails, and continues with the others.
    pub ignore_err: bool,
    /// Maximum number of hosts that work at once. Waiting for another host does not count.
    pub forks: usize,
    /// Maximum number of hosts that receive large files at once.
    pub upload_forks: usize,
    /// Maximum number of hosts that pull images at once.
    pub pull_forks: usize,
    /// Fires when the run must end gracefully: nothing new begins, and running operations finish.
    pub stop: CancellationToken,
    /// Fires when the run must end at once: running processes are ended.
    pub cancel: CancellationToken,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            owner: None,
            more: false,
            ignore_err: false,
            // Most holders of a permit wait for processes on the host, which costs the control machine nothing.
            forks: 300,
            upload_forks: 10,
            // A host pulls three layers at once: 300 hosts stay below the usual limit of 1,024 connections of a registry's
            // server.
            pull_forks: 300,
            stop: CancellationToken::new(),
            cancel: CancellationToken::new(),
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Whether the wanted state is reached.
    pub ok: bool,
    /// Whether a stop was requested before the end.
    pub stopped: bool,
    /// The failures in chronological order, without secrets.
    pub failures: Vec<TaskFailure>,
    /// Hosts that were given up under `ignore_err`, with the reason.
    pub dropped: BTreeMap<String, String>,
    /// Operations that changed something.
    pub changed: usize,
    /// Whether an operation that changes something has begun on a host. If another owner has the lock, it does not begin. An
    /// operation that was interrupted may have changed the host.
    pub begun: bool,
    /// Values that tasks stored with [`crate::Slots::output`], by name.
    pub outputs: BTreeMap<String, String>,
    /// Round trips by host, as the connections count them.
    pub round_trips: BTreeMap<String, u64>,
}

/// A task that failed on a host.
#[derive(Clone, Debug, Serialize)]
pub struct TaskFailure {
    /// Host name.
    pub host: String,
    /// Module name.
    pub module: String,
    /// Task name.
    pub task: String,
    /// The title of the task.
    pub title: String,
    /// Why.
    pub failure: Failure,
}

/// The reason why nothing new begins after a stop was requested.
const STOPPED: &str = "the run was stopped";

/// Executes a plan. The caller sends the events before the plan and [`EventKind::RunFinished`], because it may run several plans
/// in one run.
///
/// Every lane of the plan needs a connection; [`crate::CONTROL`] needs one only if scripts or uploads run there.
pub async fn run(
    plan: Plan,
    connections: BTreeMap<String, Arc<dyn Connection>>,
    options: Options,
    events: EventSender,
) -> Report {
    let shared = Arc::new(Shared::new(plan, connections, options, events.clone()));
    shared.publish_idle();
    if shared.options.stop.is_cancelled() || shared.options.cancel.is_cancelled() {
        // Not left to the watcher: lanes may be faster.
        shared.halt_all(STOPPED);
    }
    let watcher = tokio::spawn(watch_for_stop(shared.clone(), events.clone()));
    let mut lanes = JoinSet::new();
    for works in lanes_of(&shared.plan) {
        lanes.spawn(lane::Lane::new(shared.clone(), works).walk());
    }
    for barrier in barriers_of(&shared.plan) {
        let shared = shared.clone();
        lanes.spawn(async move { shared.barrier(barrier).await });
    }
    while let Some(ended) = lanes.join_next().await {
        // A bug in this crate, not in an action: panics of actions are caught in the lane.
        if let Some(panic) = ended.err().filter(tokio::task::JoinError::is_panic) {
            panic::resume_unwind(panic.into_panic());
        }
    }
    watcher.abort();
    // No event may follow the end of the run.
    let _ = watcher.await;
    shared.report()
}

/// The works that run one after the other: a list for each host, and a list for each background work.
fn lanes_of(plan: &Plan) -> Vec<Vec<usize>> {
    let mut by_host: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut lanes = Vec::new();
    for (index, work) in plan.works.iter().enumerate().filter(|(_, work)| !work.operations.is_empty()) {
        if plan.steps[work.step].background {
            lanes.push(vec![index]);
        } else {
            by_host.entry(&work.host).or_default().push(index);
        }
    }
    lanes.extend(by_host.into_values());
    lanes
}

/// The works that only wait.
fn barriers_of(plan: &Plan) -> Vec<usize> {
    let barriers = plan.works.iter().enumerate().filter(|(_, work)| plan.steps[work.step].barrier);
    barriers.map(|(index, _)| index).collect()
}

/// Waits for the user's request to stop, first gracefully and then at once.
async fn watch_for_stop(shared: Arc<Shared>, events: EventSender) {
    let Options { stop, cancel, .. } = shared.options.clone();
    let at_once = tokio::select! {
        biased;
        () = cancel.cancelled() => true,
        () = stop.cancelled() => false,
    };
    events.send(EventKind::Stopping { at_once });
    shared.halt_all(STOPPED);
    if !at_once {
        cancel.cancelled().await;
        events.send(EventKind::Stopping { at_once: true });
    }
}
