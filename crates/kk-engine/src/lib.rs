//! Runs pipelines of idempotent tasks on many hosts at once.
//!
//! The layers, from the outside in: a [`Pipeline`] is the work of one command; a [`Module`] is one capability in it; a [`Task`]
//! is one step on a set of hosts; an [`Action`] is one idempotent operation on one host. A pipeline is plain data, built from the
//! user's configuration and from the [`Facts`] of the hosts. [`Plan::new`] evaluates every check without a round trip, and
//! [`run`] carries out the remaining work. See ARCHITECTURE.md, "The engine".

mod action;
pub mod actions;
mod error;
mod escape;
mod event;
mod facts;
mod journal;
mod listen;
mod log_file;
mod owned;
mod pipeline;
mod plan;
mod probe;
pub mod question;
mod redact;
mod runner;
mod shell;
mod slot;
pub mod testing;
mod turn;

pub use action::{Action, Apply, Change, Context, LateFn, Load, OutputFn, Run, Script};
pub use error::{Failure, PlanError};
pub use escape::{escape_controls, escape_json_controls};
pub use event::{
    Event, EventKind, FailedTask, Finding, Node, Outcome, Output, Place, Problem, Severity, Summary, Warning,
};
pub use facts::{Facts, FileFact, ProbeSpec, UnitFact};
pub use journal::Journal;
pub use listen::{EventReceiver, EventSender, Listener, events, listen};
pub use log_file::LogFile;
pub use owned::{Entry, Identity, Kind, Owned};
pub use pipeline::{HostWork, Module, Pipeline, Retry, Task};
pub use plan::{Plan, PlannedTask};
pub use probe::{parse as parse_probe, probe, probe_script};
pub use question::{Answer, Question, Unanswered};
pub use redact::Redactor;
pub use runner::{Options, Owner, Report, TaskFailure, release, run};
pub use shell::{HOST_LOCK, LIB};
pub use slot::{Slot, SlotKey, Slots};
pub use turn::{Most, Turn};

/// The lane of the control machine, on which kk runs: downloads, certificates, rendering.
pub const CONTROL: &str = "control";
