//! Runs a plan: a lane for each host, tasks in the background of their lanes, and one end for all of them.
//!
//! [`run`] owns the run. `shared` is what its lanes share, `lane` walks the works of one lane in order, `select`
//! decides what travels together, `batch` is the script of a round trip, `execute` carries it out, and `tracker`
//! counts and reports.

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
    /// Who works on the hosts. One owner at a time; without one, hosts are not locked.
    pub owner: Option<Owner>,
    /// Another plan of the same run may follow: hosts are not given free at the end of this one, but by [`release`], or after
    /// two minutes in which the run did nothing there.
    pub more: bool,
    /// Drops a host that fails, and goes on with the others.
    pub ignore_err: bool,
    /// Most hosts that work at once. Waiting for another host is not working.
    pub forks: usize,
    /// Most hosts that receive large files at once.
    pub upload_forks: usize,
    /// Most hosts that pull images at once.
    pub pull_forks: usize,
    /// Fires when the run is to end tidily: nothing new begins, what runs comes to its end.
    pub stop: CancellationToken,
    /// Fires when the run is to end at once: running processes are ended.
    pub cancel: CancellationToken,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            owner: None,
            more: false,
            ignore_err: false,
            // Most of what holds a permit waits for programs on the host, which costs this machine nothing.
            forks: 300,
            upload_forks: 10,
            // A host pulls three layers at once: below the 1,024 connections that a registry's server often has.
            pull_forks: 300,
            stop: CancellationToken::new(),
            cancel: CancellationToken::new(),
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Whether everything is as wanted now.
    pub ok: bool,
    /// Whether somebody asked to stop before the end.
    pub stopped: bool,
    /// What failed, in the order of time. Without secrets.
    pub failures: Vec<TaskFailure>,
    /// Hosts that were given up under `ignore_err`, and why.
    pub dropped: BTreeMap<String, String>,
    /// Operations that changed something.
    pub changed: usize,
    /// Whether an operation that changes something has begun on a host, which it does not where another owner has the lock. One that
    /// was ended in the middle may have changed it.
    pub begun: bool,
    /// Values that tasks left with [`crate::Slots::output`], by name.
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
    /// What people read.
    pub title: String,
    /// Why.
    pub failure: Failure,
}

/// Why nothing new begins when somebody wants the run to end.
const STOPPED: &str = "the run was stopped";

/// Does what is left to do. The events before the plan and [`EventKind::RunFinished`] are the caller's, who may run
/// several plans in one run.
///
/// Every lane of the plan needs a connection; [`crate::CONTROL`] only where scripts or uploads run there.
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
        // A mistake of this crate, not of an action: those are caught in the lane.
        if let Some(panic) = ended.err().filter(tokio::task::JoinError::is_panic) {
            panic::resume_unwind(panic.into_panic());
        }
    }
    watcher.abort();
    // Nothing comes after the end of the run.
    let _ = watcher.await;
    shared.report()
}

/// The works that run one after the other: a list for each host, and one for each background work.
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

/// Waits for the person's wish to stop, first tidily and then at once.
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
