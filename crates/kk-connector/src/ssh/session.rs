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
    /// Attaches the socket to a session. The socket is shut down when this is dropped.
    pub(super) fn new(mut session: Session, socket: impl Into<OwnedFd>) -> Self {
        let socket = Arc::new(socket.into());
        session.set_tcp_stream(Arc::clone(&socket));
        Self { session, socket }
    }

    /// The socket, for another thread that waits for it.
    pub(super) fn socket(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.socket)
    }

    /// The socket as an entry for poll, for certain events.
    pub(super) fn poll_fd(&self, events: PollFlags) -> PollFd<'_> {
        PollFd::from_borrowed_fd(self.socket.as_fd(), events)
    }

    /// The events that the session waits for. The host can always send data.
    pub(super) fn wanted(&self) -> PollFlags {
        match self.session.block_directions() {
            BlockDirections::Outbound | BlockDirections::Both => PollFlags::IN | PollFlags::OUT,
            BlockDirections::Inbound | BlockDirections::None => PollFlags::IN,
        }
    }

    /// Sends a keep-alive; libssh2 does so at most every two seconds.
    pub(super) fn keep_alive(&self) -> Result<(), ssh2::Error> {
        // Enabled only for this moment: with keep-alives on, libssh2 ends every other wait after their interval.
        self.session.set_keepalive(true, 1);
        let sent = self.session.keepalive_send();
        self.session.set_keepalive(false, 0);
        sent.map(drop)
    }
}

impl Drop for SshSession {
    /// With a socket that is shut down, libssh2 frees a session and its channels at once. With an open socket it waits for the
    /// host's closing message. If it may not wait, it does not free them.
    fn drop(&mut self) {
        // The socket may be shut down already.
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
