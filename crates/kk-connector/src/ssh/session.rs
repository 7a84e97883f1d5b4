//! An authenticated session and its socket: one descriptor, shared with libssh2 so that both can wait for it.

use std::{
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
};

use rustix::{
    event::{PollFd, PollFlags},
    net::{Shutdown, shutdown},
};
use ssh2::{BlockDirections, Session};

/// A session that is logged in.
pub(super) struct SshSession {
    pub(super) session: Session,
    socket: Arc<OwnedFd>,
}

impl SshSession {
    /// Gives a session its socket. The socket is shut when this is dropped.
    pub(super) fn new(mut session: Session, socket: impl Into<OwnedFd>) -> Self {
        let socket = Arc::new(socket.into());
        session.set_tcp_stream(Arc::clone(&socket));
        Self { session, socket }
    }

    /// The socket, for another thread that waits for it.
    pub(super) fn socket(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.socket)
    }

    /// The socket in a poll, for certain events.
    pub(super) fn poll_fd(&self, events: PollFlags) -> PollFd<'_> {
        PollFd::from_borrowed_fd(self.socket.as_fd(), events)
    }

    /// What the session waits for. It can always be that the host says something.
    pub(super) fn wanted(&self) -> PollFlags {
        match self.session.block_directions() {
            BlockDirections::Outbound | BlockDirections::Both => PollFlags::IN | PollFlags::OUT,
            BlockDirections::Inbound | BlockDirections::None => PollFlags::IN,
        }
    }

    /// Asks the host for a sign of life; libssh2 does so at most every two seconds.
    pub(super) fn keep_alive(&self) -> Result<(), ssh2::Error> {
        // For this moment only: with keep-alives on, libssh2 gives up any other wait after their interval.
        self.session.set_keepalive(true, 1);
        let sent = self.session.keepalive_send();
        self.session.set_keepalive(false, 0);
        sent.map(drop)
    }
}

impl Drop for SshSession {
    /// With a socket that is shut, libssh2 frees a session and its channels at once. With an open one it waits for the
    /// host's farewell, or, when it may not wait, does not free them.
    fn drop(&mut self) {
        // It may be shut already.
        let _ = shutdown(&*self.socket, Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::{fd::AsRawFd, unix::net::UnixStream},
    };

    use super::*;

    #[test]
    fn a_session_costs_one_descriptor() {
        let (near, _far) = UnixStream::pair().unwrap();
        let number = near.as_raw_fd();
        let inode = |fd: i32| fs::read_link(format!("/proc/self/fd/{fd}")).unwrap();
        let socket = inode(number);
        let session = SshSession::new(Session::new().unwrap(), near);
        let same =
            fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        assert_eq!(same.filter(|link| *link == socket).count(), 1);
        drop(session);
    }
}
