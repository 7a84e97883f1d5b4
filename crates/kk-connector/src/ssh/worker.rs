//! The thread that owns one session: it dials, carries out one call after the other, and keeps the session alive.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::{
    SshConfig,
    dial::dial,
    errors::words,
    pipe::ChannelPipe,
    pool::{Address, Pool},
    session::SshSession,
};
use crate::{
    Error,
    exchange::{Call, Failure, Opening, Peer, Reply, Root, drive, find_root, plain},
    stats::Counters,
};

/// The interval of keep-alives on an idle session.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// If there are more workers than this in total, a session that is not the only one of its host is closed after [`CROWDED_IDLE`]
/// without a job: libssh2 alone keeps 83 KiB for each session.
const CROWD: usize = 512;
const CROWDED_IDLE: Duration = Duration::from_millis(500);
/// The number of workers of all hosts.
static WORKERS: AtomicUsize = AtomicUsize::new(0);

/// The state that the sessions of one host share.
pub(super) struct Core {
    pub(super) config: SshConfig,
    pub(super) peer: Peer,
    pub(super) counters: Counters,
    /// How the user becomes root; probed once. The lock is held during the probe, so that a wrong sudo password is tried once and
    /// not once per session.
    pub(super) root: Mutex<Option<Root>>,
    /// The random words of calls that may still run on the host although their connection is lost. The next call ends them.
    pub(super) lost: Mutex<Vec<String>>,
}

/// One call for a worker.
pub(super) struct Job {
    pub(super) call: Call,
    pub(super) reply: oneshot::Sender<Result<Reply, Error>>,
    /// The worker's own address, which is returned to the pool when the job is done.
    pub(super) worker: Address,
    pub(super) permit: OwnedSemaphorePermit,
}

/// Starts a worker. It ends when its address is dropped.
pub(super) fn start(core: Arc<Core>, pool: &Arc<Pool>) -> Result<Address, Error> {
    // A worker has at most one job. An unbounded channel takes 6 KiB.
    let (sender, jobs) = mpsc::sync_channel(1);
    let host = core.peer.host.clone();
    let address = pool.add(sender);
    let (number, weak) = (address.number(), Arc::downgrade(pool));
    thread::Builder::new()
        .name(format!("ssh {host}"))
        .spawn(move || {
            WORKERS.fetch_add(1, Ordering::Relaxed);
            Worker { core, session: None }.work(number, &jobs, &weak);
            WORKERS.fetch_sub(1, Ordering::Relaxed);
        })
        .map_err(|error| Error::Unreachable {
            address: host,
            reason: format!("no thread for it: {error}"),
        })?;
    Ok(address)
}

struct Worker {
    core: Arc<Core>,
    session: Option<SshSession>,
}

impl Worker {
    fn work(mut self, number: u64, jobs: &Receiver<Job>, pool: &Weak<Pool>) {
        let idle = self.core.config.idle;
        let (mut used, mut alive) = (Instant::now(), Instant::now());
        loop {
            let spare = pool.upgrade().is_some_and(|pool| pool.has_spare());
            let patience = patience(idle, spare, WORKERS.load(Ordering::Relaxed));
            match jobs.recv_timeout(KEEPALIVE.min(patience)) {
                Ok(Job { mut call, reply, worker, permit }) => {
                    let result = self.serve(&mut call);
                    (used, alive) = (Instant::now(), Instant::now());
                    if let Some(pool) = pool.upgrade() {
                        pool.put(worker);
                    }
                    drop(permit);
                    // The caller may have dropped its call; the call has been ended in that case.
                    drop(reply.send(result));
                }
                Err(RecvTimeoutError::Timeout) => {
                    let idle_for_long = used.elapsed() >= patience;
                    if idle_for_long && pool.upgrade().is_some_and(|pool| pool.retire(number)) {
                        break;
                    }
                    if alive.elapsed() >= KEEPALIVE.min(idle) {
                        alive = Instant::now();
                        self.session.take_if(|session| session.keep_alive().is_err());
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        if let Some(session) = self.session {
            // Only a courtesy: a closed socket has the same effect.
            drop(session.session.disconnect(None, "done", None));
        }
    }

    /// Carries out a call; once more on a new session if the first attempt ended before the script began.
    fn serve(&mut self, call: &mut Call) -> Result<Reply, Error> {
        match self.attempt(call) {
            Err(Failure::NotBegun(_)) => {}
            Err(Failure::Final(error)) => return Err(error),
            Ok(reply) => return Ok(reply),
        }
        if call.cancel.is_cancelled() {
            return Err(Error::Cancelled { host: self.core.peer.host.clone() });
        }
        self.attempt(call).map_err(|failure| match failure {
            Failure::NotBegun(reason) => Error::Lost { host: self.core.peer.host.clone(), reason },
            Failure::Final(error) => error,
        })
    }

    /// One attempt. The session is kept only if it is certainly in order.
    fn attempt(&mut self, call: &mut Call) -> Result<Reply, Failure> {
        let core = &*self.core;
        let session = match self.session.take() {
            Some(session) => session,
            None => dial(&core.config).inspect(|_| core.counters.session()).map_err(Failure::Final)?,
        };
        let lost = core.lost().clone();
        let opening = Opening::new(&core.root(&session)?, call, &lost).map_err(Failure::Final)?;
        core.counters.attempt();
        let prelude = opening.prelude.len() as u64;
        let mut pipe = core.exec(&session, &opening.command, opening.pty)?;
        let nonce = opening.nonce.clone();
        let reply = drive(&mut pipe, call, opening, &core.peer).inspect_err(|failure| {
            if matches!(failure, Failure::Final(_)) {
                core.lost().push(nonce);
            }
        })?;
        core.lost().retain(|nonce| !lost.contains(nonce));
        core.counters.moved(prelude + reply.body_sent, reply.received);
        if pipe.finish().is_ok() {
            self.session = Some(session);
        }
        Ok(reply)
    }
}

/// How long a session may be idle, given the total number of workers.
fn patience(idle: Duration, spare: bool, workers: usize) -> Duration {
    if spare && workers > CROWD { idle.min(CROWDED_IDLE) } else { idle }
}

impl Core {
    fn lost(&self) -> MutexGuard<'_, Vec<String>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a command line on the host.
    fn exec<'a>(
        &self,
        session: &'a SshSession,
        command: &str,
        pty: bool,
    ) -> Result<ChannelPipe<'a>, Failure> {
        let SshConfig { silence, .. } = self.config;
        ChannelPipe::exec(session, command, pty, silence).map_err(|error| self.not_begun(&error))
    }

    fn not_begun(&self, error: &ssh2::Error) -> Failure {
        Failure::NotBegun(words(&self.config, error))
    }

    fn root(&self, session: &SshSession) -> Result<Root, Failure> {
        let mut known = self.root.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(root) = &*known {
            return Ok(root.clone());
        }
        let config = &self.config;
        let mut exec = |command: &str, input: &[u8]| {
            let mut pipe = self.exec(session, command, false)?;
            let said = plain(&mut pipe, input, config.timeout)
                .map_err(|error| Failure::NotBegun(error.to_string()))?;
            pipe.finish().map_err(|error| self.not_begun(&error))?;
            Ok(said)
        };
        let root = if config.user == "root" {
            Root::Already
        } else {
            find_root(&mut exec, &self.peer, config.sudo_password.as_ref().or(config.password.as_ref()))?
        };
        *known = Some(root.clone());
        Ok(root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_crowd_only_spare_sessions_are_closed_soon() {
        let idle = Duration::from_secs(30);
        for (spare, workers, wanted) in [(true, 512, idle), (true, 513, CROWDED_IDLE), (false, 5000, idle)] {
            assert_eq!(patience(idle, spare, workers), wanted, "{spare} {workers}");
        }
        assert_eq!(patience(Duration::from_millis(50), true, 513), Duration::from_millis(50));
    }
}
