//! What happens in a run, told to listeners: terminal, log file, journal, report.

use serde::Serialize;

use crate::Failure;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// Milliseconds since the run began.
    pub at_ms: u64,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened. Stable: this is what `--output json` prints and what the journal keeps.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// A run has begun.
    RunStarted {
        /// `create cluster`.
        command: String,
        /// Names of all hosts.
        hosts: Vec<String>,
        /// `YYYY-MM-DDTHH:MM:SSZ`.
        time: String,
    },
    /// Something for the person that belongs to no task: `kk` adapts to a host, a version has no known checksum.
    Note {
        /// Host name, when it is about one.
        host: Option<String>,
        /// One line.
        text: String,
    },
    /// The facts of a host are known.
    Probed {
        /// Host name.
        host: String,
    },
    /// The plan is made: number of tasks that have something to do, by module in order.
    Planned {
        /// `(module, tasks × hosts to do)`.
        modules: Vec<(String, usize)>,
    },
    /// A task begins on a host.
    TaskStarted {
        /// Host name.
        host: String,
        /// Module name.
        module: String,
        /// Task name.
        task: String,
        /// What people read.
        title: String,
        /// 1 for the first attempt.
        attempt: u32,
    },
    /// Bytes of a transfer.
    Progress {
        /// Host name.
        host: String,
        /// Module name.
        module: String,
        /// Task name.
        task: String,
        /// Bytes done.
        done: u64,
        /// Bytes in all; 0 when unknown.
        total: u64,
    },
    /// A task has ended on a host.
    TaskFinished {
        /// Host name.
        host: String,
        /// Module name.
        module: String,
        /// Task name.
        task: String,
        /// What people read.
        title: String,
        /// How it ended; its fields stand beside the others.
        #[serde(flatten)]
        outcome: Outcome,
        /// Time from its start, in milliseconds.
        took_ms: u64,
    },
    /// All tasks of a module that had something to do are done on all hosts.
    ModuleFinished {
        /// Module name.
        module: String,
        /// Time from its first start, in milliseconds.
        took_ms: u64,
    },
    /// The person asked to stop.
    Stopping {
        /// False: running actions are let end. True: they are ended.
        at_once: bool,
    },
    /// The run has ended.
    RunFinished {
        /// Whether all went well.
        ok: bool,
        /// Operations that changed something.
        changed: usize,
        /// Round trips by host.
        round_trips: std::collections::BTreeMap<String, u64>,
        /// Time of the whole run, in milliseconds.
        took_ms: u64,
    },
}

/// How a task ended on a host.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// There was nothing to do.
    Unchanged,
    /// Done: what was changed, a line an operation.
    Changed {
        /// The lines of the plan.
        changes: Vec<String>,
    },
    /// Failed this time, and tried again after a wait.
    Retrying {
        /// Why.
        failure: Failure,
        /// The wait, in milliseconds.
        wait_ms: u64,
    },
    /// Failed for good.
    Failed {
        /// Why.
        failure: Failure,
    },
    /// Not begun, because something else failed or the run was stopped.
    Skipped {
        /// Why.
        reason: String,
    },
}
