//! The lock on a host: one owner works on it at a time. The host keeps it, see `host_lock.sh`.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use async_trait::async_trait;
use kk_connector::{
    Command, Connection, Error, Output, Stats, Upload, UploadHooks, UploadOutcome, nonce, quote,
};

use crate::shell::{HOST_LOCK, RESET};

/// Exit code of a batch that did not get the lock; `EX_TEMPFAIL` of sysexits(3).
pub(super) const LOCKED: i32 = 75;

/// A driver that is ended by a signal has come to its end, too: dash does nothing at the exit of a shell that a signal ends.
const AT_END: &str = "trap 'exit 143' HUP INT TERM PIPE\ntrap kk_touch 0";

/// What a host says to a run that has lost it to another owner.
const LOST: &str = "another kk has worked on this host since the last action of this run: ";

/// Time to give a host free.
const RELEASE: Duration = Duration::from_secs(10);

/// What to do about a lock that another owner holds, where that is what a host says.
pub(super) fn hint(said: &str) -> Option<String> {
    if said.contains(LOST) {
        return Some("run the same command again: it probes the hosts again".to_owned());
    }
    let hint = "wait until it ends; the lock expires two minutes after its last action on the host, also if \
                it was killed";
    is_refusal(said).then(|| hint.to_owned())
}

/// Whether a host says that another owner has its lock, or had it in between.
pub(super) fn is_refusal(said: &str) -> bool {
    said.contains("another kk works on this host: ") || said.contains(LOST)
}

/// On whose behalf a run works.
#[derive(Clone, Debug)]
pub struct Owner {
    id: String,
    run: String,
    name: String,
}

impl Owner {
    /// An owner loses a host on which it has done nothing for so long.
    pub const IDLE: Duration = Duration::from_mins(2);

    /// `id` is the same for runs that may continue each other, so that a run that was killed does not lock out the next;
    /// at most one of them may run at a time. `name` is for people: one line.
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self { id: id.into(), run: nonce(), name: name.into() }
    }

    /// Identifies what may continue this run.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The lines of a driver that take the lock before the first operation, and note when the last one has ended.
    pub(super) fn lock(&self) -> String {
        let mut text = self.functions();
        let _ = writeln!(
            text,
            "kk_lock >lock || {{ kk_say refused; cat lock; kk_say end 0 {LOCKED}; exit 0; }}\n{AT_END}"
        );
        text
    }

    /// The hooks of an upload that takes the lock before all else, and gives it free when it is the `last` on the host.
    fn lock_upload(&self, hooks: UploadHooks, last: bool) -> UploadHooks {
        let lock =
            format!("{RESET}{}kk_lock >&2 || exit {LOCKED}\nat_end() {{ kk_touch; }}\n", self.functions());
        let after = hooks.after.as_deref().unwrap_or_default();
        let after = last.then(|| format!("{after}\n{HOST_LOCK}kk_unlock\n").into()).or(hooks.after.clone());
        UploadHooks { lock: Some(lock.into()), after, ..hooks }
    }

    /// `kk_lock` with what it reads.
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

/// Gives hosts free at the end of a run of several plans, all at once. One that does not answer is free two minutes after the
/// run's last action there.
pub async fn release(owner: &Owner, hosts: impl IntoIterator<Item = Arc<dyn Connection>>) {
    let script: Arc<str> = format!("{RESET}{}kk_release\n", owner.functions()).into();
    let releases = hosts.into_iter().map(|host| {
        let command = Command { timeout: RELEASE, ..Command::new(script.clone()) };
        async move { tokio::time::timeout(RELEASE, host.run(command)).await.map(drop) }
    });
    futures::future::join_all(releases).await;
}

/// The way to a host for the code of an action. What its uploads run there counts for the lock as batches do.
pub(super) struct Locking {
    pub(super) inner: Arc<dyn Connection>,
    pub(super) owner: Owner,
    /// Nothing of this run comes on the host after the code.
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
