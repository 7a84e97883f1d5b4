//! The thread that owns one session: it dials, carries out one call after the other, and keeps the session alive.

use std::{
    sync::{
        Arc, Mutex, PoisonError, Weak,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::{
    Pool, SshConfig,
    dial::{Dialled, dial, words},
    pipe::ChannelPipe,
};
use crate::{
    Error,
    stats::Counters,
    talk::{Call, Failure, Opening, Reply, Root, Whom, drive, find_root, plain},
};

/// How often an idle session says that it is still there.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// What the sessions of one host share.
pub(super) struct Core {
    pub(super) config: SshConfig,
    pub(super) whom: Whom,
    pub(super) counters: Counters,
    /// How the user becomes root; asked once. Locked while it is being asked, so that a wrong sudo password is
    /// tried once and not once a session.
    pub(super) root: Mutex<Option<Root>>,
}

/// One call on its way through a worker.
pub(super) struct Job {
    pub(super) call: Call,
    pub(super) reply: oneshot::Sender<Result<Reply, Error>>,
    /// The worker's own address, which goes back to the pool when the job is done.
    pub(super) worker: mpsc::Sender<Job>,
    pub(super) permit: OwnedSemaphorePermit,
}

/// Starts a worker. It ends when nobody has its address any more.
pub(super) fn start(core: Arc<Core>, pool: Weak<Pool>) -> Result<mpsc::Sender<Job>, Error> {
    let (sender, jobs) = mpsc::channel();
    let host = core.whom.host.clone();
    thread::Builder::new()
        .name(format!("ssh {host}"))
        .spawn(move || Worker { core, dialled: None }.work(&jobs, &pool))
        .map_err(|error| Error::Unreachable {
            address: host,
            reason: format!("no thread for it: {error}"),
        })?;
    Ok(sender)
}

struct Worker {
    core: Arc<Core>,
    dialled: Option<Dialled>,
}

impl Worker {
    fn work(mut self, jobs: &Receiver<Job>, pool: &Weak<Pool>) {
        loop {
            match jobs.recv_timeout(KEEPALIVE) {
                Ok(Job { mut call, reply, worker, permit }) => {
                    let result = self.serve(&mut call);
                    if let Some(pool) = pool.upgrade() {
                        pool.put(worker);
                    }
                    drop(permit);
                    // The caller may have gone away meanwhile; its call has been ended then.
                    drop(reply.send(result));
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.dialled.take_if(|dialled| dialled.keep_alive().is_err());
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        if let Some(dialled) = self.dialled {
            // Only a courtesy: closing the socket says the same.
            drop(dialled.session.disconnect(None, "done", None));
        }
    }

    /// Carries out a call; once more on a new session when the first attempt ended before the script began.
    fn serve(&mut self, call: &mut Call) -> Result<Reply, Error> {
        match self.attempt(call) {
            Err(Failure::NotBegun(reason)) => {
                tracing::debug!(host = self.core.whom.host, reason, "dialling again");
            }
            Err(Failure::Final(error)) => return Err(error),
            Ok(reply) => return Ok(reply),
        }
        if call.cancel.is_cancelled() {
            return Err(Error::Cancelled { host: self.core.whom.host.clone() });
        }
        self.attempt(call).map_err(|failure| match failure {
            Failure::NotBegun(reason) => Error::Lost { host: self.core.whom.host.clone(), reason },
            Failure::Final(error) => error,
        })
    }

    /// One attempt. The session is kept only when it is surely in order.
    fn attempt(&mut self, call: &mut Call) -> Result<Reply, Failure> {
        let core = &*self.core;
        let dialled = match self.dialled.take() {
            Some(dialled) => dialled,
            None => dial(&core.config).inspect(|_| core.counters.session()).map_err(Failure::Final)?,
        };
        let opening = Opening::new(&core.root(&dialled)?, call).map_err(Failure::Final)?;
        core.counters.attempt();
        let prelude = opening.prelude.len() as u64;
        let mut pipe = core.exec(&dialled, &opening.command, opening.pty)?;
        let reply = drive(&mut pipe, call, opening, &core.whom)?;
        core.counters.moved(prelude + reply.body_sent, reply.received);
        if pipe.finish().is_ok() {
            self.dialled = Some(dialled);
        }
        Ok(reply)
    }
}

impl Core {
    /// Starts a command line on the host.
    fn exec<'a>(&self, dialled: &'a Dialled, command: &str, pty: bool) -> Result<ChannelPipe<'a>, Failure> {
        let SshConfig { silence, .. } = self.config;
        ChannelPipe::exec(dialled, command, pty, silence).map_err(|error| self.not_begun(&error))
    }

    fn not_begun(&self, error: &ssh2::Error) -> Failure {
        Failure::NotBegun(words(&self.config, error))
    }

    fn root(&self, dialled: &Dialled) -> Result<Root, Failure> {
        let mut known = self.root.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(root) = &*known {
            return Ok(root.clone());
        }
        let config = &self.config;
        let mut exec = |command: &str, input: &[u8]| {
            let mut pipe = self.exec(dialled, command, false)?;
            let said = plain(&mut pipe, input, config.timeout)
                .map_err(|error| Failure::NotBegun(error.to_string()))?;
            pipe.finish().map_err(|error| self.not_begun(&error))?;
            Ok(said)
        };
        let root = if config.user == "root" {
            Root::Already
        } else {
            find_root(&mut exec, &self.whom, config.sudo_password.as_ref().or(config.password.as_ref()))?
        };
        *known = Some(root.clone());
        Ok(root)
    }
}
