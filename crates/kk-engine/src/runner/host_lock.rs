//! The lock on a host: one owner works on it at a time. The host stores it, see `host_lock.sh`.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use async_trait::async_trait;
use kk_connector::{
    Command, Connection, Error, Output, Stats, Upload, UploadHooks, UploadOutcome, nonce, quote,
};

use crate::shell::{HOST_LOCK, RESET};

/// Exit code of a batch that did not get the lock; `EX_TEMPFAIL` of sysexits(3).
pub(super) const LOCKED: i32 = 75;

/// A driver that a signal ends must reach its end, too: dash runs no exit trap in a shell that a signal ends.
const AT_END: &str = "trap 'exit 143' HUP INT TERM PIPE\ntrap kk_touch 0";

/// A host's message for a run that has lost the lock to another owner.
const LOST: &str = "another kk has worked on this host since the last action of this run: ";

/// Time limit for releasing a host.
const RELEASE: Duration = Duration::from_secs(10);

/// The hint for a host's message that another owner holds the lock.
pub(super) fn hint(said: &str) -> Option<String> {
    if said.contains(LOST) {
        return Some("run the same command again: it probes the hosts again".to_owned());
    }
    let hint = "wait until it ends; the lock expires two minutes after its last action on the host, also if \
                it was killed";
    is_refusal(said).then(|| hint.to_owned())
}

/// Whether a host reports that another owner has its lock, or had it in between.
pub(super) fn is_refusal(said: &str) -> bool {
    said.contains("another kk works on this host: ") || said.contains(LOST)
}

/// The owner of a run.
#[derive(Clone, Debug)]
pub struct Owner {
    id: String,
    run: String,
    name: String,
}

impl Owner {
    /// An owner loses the lock on a host after this time without an action there.
    pub const IDLE: Duration = Duration::from_mins(2);

    /// `id` is the same for runs that may continue each other, so that a killed run does not lock out the next. At most one such
    /// run may be active at a time. `name` is for people: one line.
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self { id: id.into(), run: nonce(), name: name.into() }
    }

    /// Identifies the runs that may continue this run.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The lines of a driver that take the lock before the first operation, and record the time when the last operation has
    /// ended.
    pub(super) fn lock(&self) -> String {
        let mut text = self.functions();
        let _ = writeln!(
            text,
            "kk_lock >lock || {{ kk_say refused; cat lock; kk_say end 0 {LOCKED}; exit 0; }}\n{AT_END}"
        );
        text
    }

    /// The hooks of an upload that takes the lock before everything else, and releases it if the upload is the `last` work on the
    /// host.
    fn lock_upload(&self, hooks: UploadHooks, last: bool) -> UploadHooks {
        let lock =
            format!("{RESET}{}kk_lock >&2 || exit {LOCKED}\nat_end() {{ kk_touch; }}\n", self.functions());
        let after = hooks.after.as_deref().unwrap_or_default();
        let after = last.then(|| format!("{after}\n{HOST_LOCK}kk_unlock\n").into()).or(hooks.after.clone());
        UploadHooks { lock: Some(lock.into()), after, ..hooks }
    }

    /// `kk_lock` with the variables that it reads.
    fn functions(&self) -> String {
        let line = |text: &str| quote(&text.replace('\n', " ")).into_owned();
        let mut text = String::new();
        for (name, value) in [("KK_OWNER", &self.id), ("KK_RUN", &self.run), ("KK_NAME", &self.name)] {
            let _ = writeln!(text, "{name}={}", line(value));
        }
        let _ = writeln!(text, "KK_IDLE={}", Self::IDLE.as_secs());
        text.push_str(HOST_LOCK);
        text
    }
}

/// Releases hosts at the end of a run of several plans, all at once. The lock on a host that does not respond expires two minutes
/// after the run's last action there.
pub async fn release(owner: &Owner, hosts: impl IntoIterator<Item = Arc<dyn Connection>>) {
    let script: Arc<str> = format!("{RESET}{}kk_release\n", owner.functions()).into();
    let releases = hosts.into_iter().map(|host| {
        let command = Command { timeout: RELEASE, ..Command::new(script.clone()) };
        async move { tokio::time::timeout(RELEASE, host.run(command)).await.map(drop) }
    });
    futures::future::join_all(releases).await;
}

/// The connection to a host for the code of an action. Its uploads take the lock like batches do.
pub(super) struct Locking {
    pub(super) inner: Arc<dyn Connection>,
    pub(super) owner: Owner,
    /// The run does nothing else on the host after this code.
    pub(super) last: bool,
}

#[async_trait]
impl Connection for Locking {
    fn host(&self) -> &str {
        self.inner.host()
    }

    async fn run(&self, command: Command) -> Result<Output, Error> {
        self.inner.run(command).await
    }

    async fn upload(&self, upload: Upload) -> Result<UploadOutcome, Error> {
        let hooks = self.owner.lock_upload(upload.hooks, self.last);
        self.inner.upload(Upload { hooks, ..upload }).await
    }

    async fn read_part(&self, path: &str, offset: u64, most: u64) -> Result<Vec<u8>, Error> {
        self.inner.read_part(path, offset, most).await
    }

    fn stats(&self) -> Stats {
        self.inner.stats()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
