//! All events of a run, as values. The terminal, the log, the journal and `--output json` are listeners to the same events.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{Failure, PlannedTask};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Event {
    /// Milliseconds since the run began.
    pub at_ms: u64,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened. Stable: this is what `--output json` prints and what the journal keeps.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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
        /// Whether the plan is only shown.
        dry_run: bool,
    },
    /// The configuration can be used, but the user should know this.
    Warning(Warning),
    /// A message outside of tasks, such as a retried download or a version without a known checksum.
    Note {
        /// Host name, when it is about one.
        host: Option<String>,
        /// One line.
        message: String,
    },
    /// The key of a new host was stored. It is trusted from now on.
    HostKeyLearnt {
        /// Host name, or "bastion of" it.
        host: String,
        /// `address:port` as dialled.
        address: String,
        /// The type of the key, `ssh-ed25519`.
        key_type: String,
        /// `SHA256:…`, as `ssh-keygen -l` prints it.
        fingerprint: String,
    },
    /// The facts of a host are known.
    Probed {
        /// Host name.
        host: String,
    },
    /// A result of the checks that the user should know before the first change.
    Finding(Finding),
    /// The plan is complete: number of tasks with changes, by module in order.
    Planned {
        /// `(module, tasks × hosts to do)`.
        modules: Vec<(String, usize)>,
    },
    /// A task of the plan with changes on a host.
    PlannedTask(PlannedTask),
    /// A task has begun on a host.
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
    /// Progress of a transfer, in bytes.
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
    /// All tasks of a module that had changes have ended on all hosts.
    ModuleFinished {
        /// Module name.
        module: String,
        /// Time from its first start, in milliseconds.
        took_ms: u64,
    },
    /// The user requested a stop.
    Stopping {
        /// False: running actions come to their end. True: they are ended.
        at_once: bool,
    },
    /// A problem that made the command fail; there is one event per problem.
    Error(Problem),
    /// The result of the command.
    Summary(Summary),
    /// The run has ended; always the last event of a run.
    RunFinished {
        /// Whether all went well.
        ok: bool,
        /// Exit code of the program.
        exit_code: u8,
        /// Operations that changed something.
        changed: usize,
        /// Round trips by host.
        round_trips: BTreeMap<String, u64>,
        /// Directory with log and journal; a dry run has none.
        log: Option<String>,
        /// Time of the whole run, in milliseconds.
        took_ms: u64,
    },
}

/// How a task ended on a host.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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
        message: String,
    },
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing is begun.
    Error,
    /// It may go wrong.
    Warning,
    /// The program sets what is needed.
    Adapted,
}

/// A result of the checks that the user should know before the first change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// Host name; none for what concerns the cluster.
    pub host: Option<String>,
    /// What is so, in a few words.
    pub message: String,
    /// What to do, or what the program does.
    pub hint: String,
}

/// A warning about the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Warning {
    /// What is unusual.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// Where, when it has a place in a file.
    #[serde(flatten)]
    pub place: Option<Place>,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Place {
    /// The file as the user named it.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// The whole message with its source line, for people.
    #[serde(skip)]
    pub text: String,
}

/// A reason why a command failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// Exit code of the program; says what kind of problem it is.
    pub exit_code: u8,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// Where, when it has a place in a file.
    #[serde(flatten)]
    pub place: Option<Place>,
    /// The task that failed, when it was one.
    #[serde(flatten)]
    pub task: Option<FailedTask>,
}

/// A task that failed on a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FailedTask {
    /// Host name.
    pub host: String,
    /// Title of the task.
    pub title: String,
    /// What ran, without secrets.
    pub command: Option<String>,
    /// Its exit code.
    pub code: Option<i32>,
    /// Its last lines of standard error.
    pub stderr: Vec<String>,
}

/// What a command achieved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Summary {
    /// "cluster prod is ready".
    pub message: String,
    /// The nodes of the cluster.
    pub nodes: Vec<Node>,
    /// Named results in order: address of the API, kubeconfig.
    pub outputs: Vec<Output>,
    /// A command to continue with.
    pub next: Option<String>,
}

/// A node of a summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Node {
    /// Name.
    pub name: String,
    /// Address inside the cluster.
    pub address: String,
    /// Roles, such as `control-plane`.
    pub roles: Vec<String>,
}

/// A named result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}
