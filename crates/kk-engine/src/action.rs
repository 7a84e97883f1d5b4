//! The trait of an idempotent operation on one host: check first, then change.

use std::sync::Arc;

use async_trait::async_trait;
use kk_connector::{Connection, Payload};
use tokio_util::sync::CancellationToken;

use crate::{Facts, Failure, ProbeSpec, Slots};

/// One idempotent operation on one host.
pub trait Action: Send + Sync {
    /// Compares the host's state with the wanted state. Pure: no I/O, no clock; the same facts give the same result.
    fn check(&self, facts: &Facts) -> Change;

    /// How the change is made. Called only if [`Action::check`] found a difference in the same facts.
    fn apply(&self, facts: &Facts) -> Apply;

    /// Adds to `spec` what [`Action::check`] reads from the facts.
    fn asks(&self, _spec: &mut ProbeSpec) {}

    /// The resource that it loads while it runs.
    fn load(&self) -> Load {
        Load::Work
    }

    /// Whether its end counts as a change. An action that only waits changes nothing.
    fn is_change(&self) -> bool {
        self.load() != Load::Wait
    }

    /// Whether a script that ended with `code` may succeed if it is repeated: "not ready yet", a busy lock. Errors of the connection
    /// are classified by `kk_connector::Error`.
    fn transient(&self, _code: i32, _stderr: &str) -> bool {
        false
    }

    /// The operator's remedy for a failure, derived from the host's messages.
    fn hint(&self, _stderr: &str) -> Option<String> {
        None
    }
}

/// The resource that an operation loads while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Load {
    /// The control machine and the host: it holds a permit of `--forks`.
    #[default]
    Work,
    /// Nothing: it waits. It holds no permit, and ends at once when the run is stopped.
    Wait,
    /// A registry, for minutes: it holds no permit of `--forks` but one of its own.
    Pull,
}

/// The difference between the current and the wanted state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// No difference.
    None,
    /// The changes, one line per item, as the dry run prints them: "write /etc/crictl.yaml", "start etcd".
    Needed(Vec<String>),
}

impl Change {
    /// A difference described by one line.
    pub fn needed(line: impl Into<String>) -> Self {
        Self::Needed(vec![line.into()])
    }

    /// Whether there is something to do.
    pub fn is_needed(&self) -> bool {
        matches!(self, Self::Needed(_))
    }
}

/// How a change is made.
pub enum Apply {
    /// By a script on the host. Adjacent scripts of a lane are sent in one round trip.
    Script(Script),
    /// By a script whose text needs the values of slots. It is made when the slots that the task needs are filled.
    Late(LateFn),
    /// By code on the control machine, which may use the connection: uploads, downloads, certificates.
    Run(Arc<dyn Run>),
}

/// Makes a script from the values of slots.
pub type LateFn = Box<dyn Fn(&Slots) -> Result<Script, Failure> + Send + Sync>;

/// Code behind [`Apply::Run`].
#[async_trait]
pub trait Run: Send + Sync {
    /// Makes the change. Slots that the task provides are filled here, or by the engine if they carry no value. A task declares
    /// the slots that it waits for in its needs and does not wait here, because running code holds a permit of `--forks`.
    async fn run(&self, context: Context) -> Result<(), Failure>;

    /// Whether it transfers large files, so that it counts against the limit of uploads and not of hosts.
    fn transfers(&self) -> bool {
        false
    }
}

/// The argument of [`Run::run`].
#[derive(Clone)]
pub struct Context {
    /// The host of this lane; the control machine has one too.
    pub host: String,
    /// The connection to the host.
    pub connection: Arc<dyn Connection>,
    /// Values of other tasks.
    pub slots: Slots,
    /// Fires when the run must stop at once.
    pub cancel: CancellationToken,
    /// Reports `done` of `total` bytes for the progress bar.
    pub progress: Arc<dyn Fn(u64, u64) + Send + Sync>,
    /// Shows the user a message about this host.
    pub note: Arc<dyn Fn(String) + Send + Sync>,
}

/// A POSIX `sh` script with the small files that it reads.
///
/// It runs under `set -e` in a separate directory that contains its files. The functions of `kk-engine/src/lib.sh` (`kk_own`,
/// `kk_put`, …) are available.
#[derive(Clone, Default)]
pub struct Script {
    /// The shell text. User input in it must be quoted with [`kk_connector::quote`].
    pub text: String,
    /// Files in the script's directory. Their content never appears in a log.
    pub files: Vec<Payload>,
    /// Fills a slot from the script's standard output, if the script ended with 0.
    pub output: Option<OutputFn>,
}

/// Reads a script's standard output into slots.
pub type OutputFn = Arc<dyn Fn(&str, &Slots) -> Result<(), Failure> + Send + Sync>;

impl Script {
    /// A script without files.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Adds a file to the script's directory.
    #[must_use]
    pub fn with_file(mut self, name: impl Into<String>, content: impl Into<Arc<[u8]>>) -> Self {
        self.files.push(Payload { name: name.into(), content: content.into() });
        self
    }
}
