//! The lock on a host: one owner works on it at a time. The host keeps it, see `host_lock.sh`.

use std::{fmt::Write as _, time::Duration};

use kk_connector::{nonce, quote};

use crate::shell::HOST_LOCK;

/// Exit code of a batch that did not get the lock; `EX_TEMPFAIL` of sysexits(3).
pub(super) const LOCKED: i32 = 75;

/// What to do about a lock that another owner holds.
pub(super) const HINT: &str = "wait until it has ended; two minutes after its last action on the host the lock is free, \
                               also when it was killed";

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

    /// The lines of a driver that take the lock before the first operation.
    pub(super) fn lock(&self) -> String {
        let line = |text: &str| quote(&text.replace('\n', " ")).into_owned();
        let mut text = String::new();
        for (name, value) in [("KK_OWNER", &self.id), ("KK_RUN", &self.run), ("KK_NAME", &self.name)] {
            let _ = writeln!(text, "{name}={}", line(value));
        }
        let _ = writeln!(text, "KK_IDLE={}", Self::IDLE.as_secs());
        text.push_str(HOST_LOCK);
        let _ =
            writeln!(text, "kk_lock >lock || {{ kk_say start 0; cat lock; kk_say end 0 {LOCKED}; exit 0; }}");
        text
    }
}
