//! Connects to hosts over SSH (libssh2). No other code in the workspace uses `ssh2`.
//!
//! An [`SshConnection`] owns a pool of at most [`SESSIONS`] sessions. Each is owned by one OS thread ([`worker`]) and carries one
//! call at a time, so that commands run while uploads are sent. Sessions are dialled when they are first needed, kept alive, and
//! dialled again after they were dropped. Sessions that are idle for long are closed, except the last one, and sooner if there
//! are very many: with hundreds of hosts, descriptors, threads and libssh2's buffers are the limit.
//!
//! Imports between the files have one direction: mod → pool, worker → dial → auth, bastion, `known_hosts`, logins → session,
//! errors → config.

mod auth;
mod bastion;
mod config;
mod dial;
mod errors;
mod key;
mod known_hosts;
mod logins;
mod pipe;
mod pool;
mod session;
mod silence;
mod worker;

pub use config::{HostKeyPolicy, SshConfig};

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::{Semaphore, oneshot};

use crate::{
    Error,
    exchange::{Call, Caller, Peer, Reply},
    stats::Counters,
};
use pool::Pool;
use worker::{Core, Job};

/// Most sessions for one host: OpenSSH accepts up to ten unauthenticated connections (`MaxStartups`).
const SESSIONS: usize = 4;
/// How long a cancelled call may take to end the remote process before its caller gets a result.
const CANCEL_GRACE: Duration = Duration::from_secs(4);

/// A connection to a host over SSH.
pub struct SshConnection {
    core: Arc<Core>,
    pool: Arc<Pool>,
    permits: Arc<Semaphore>,
}

impl SshConnection {
    /// Creates the connection; it is dialled at the first call.
    pub fn new(config: SshConfig) -> Self {
        let peer = Peer { host: config.name.clone(), user: config.user.clone() };
        Self {
            core: Arc::new(Core {
                config,
                peer,
                counters: Counters::default(),
                root: Mutex::default(),
                lost: Mutex::default(),
            }),
            pool: Arc::default(),
            permits: Arc::new(Semaphore::new(SESSIONS)),
        }
    }
}

#[async_trait]
impl Caller for SshConnection {
    fn peer(&self) -> &Peer {
        &self.core.peer
    }

    fn counters(&self) -> &Counters {
        &self.core.counters
    }

    async fn call(&self, mut call: Call) -> Result<Reply, Error> {
        let cancelled = || Error::Cancelled { host: self.core.peer.host.clone() };
        let stop = call.cancel.child_token();
        // If the caller drops this future, the remote process ends, too.
        let _guard = stop.clone().drop_guard();
        call.cancel = stop.clone();
        let permit = tokio::select! {
            permit = Arc::clone(&self.permits).acquire_owned() => permit.expect("the semaphore is never closed"),
            () = stop.cancelled() => return Err(cancelled()),
        };
        let worker = match self.pool.take() {
            Some(worker) => worker,
            None => worker::start(Arc::clone(&self.core), &self.pool)?,
        };
        let (reply, answer) = oneshot::channel();
        let job = Job { call, reply, worker: worker.clone(), permit };
        let gone =
            || Error::Lost { host: self.core.peer.host.clone(), reason: "its thread has ended".into() };
        worker.jobs.send(job).map_err(|_| gone())?;
        tokio::select! {
            answer = answer => answer.unwrap_or_else(|_| Err(gone())),
            () = async { stop.cancelled().await; tokio::time::sleep(CANCEL_GRACE).await } => Err(cancelled()),
        }
    }

    fn learnt(&self) -> Vec<crate::LearntKey> {
        self.core.config.learnt.take()
    }

    fn close_idle(&self) {
        self.pool.clear();
    }
}
