//! A channel of a session as a [`Pipe`].

use std::{
    io::{self, Read, Write},
    os::fd::OwnedFd,
    time::Duration,
};

use rustix::event::{PollFd, PollFlags};
use ssh2::{BlockDirections, Channel, Session};

use super::dial::Dialled;
use crate::{
    poll::poll_all,
    talk::{Pipe, Stream},
};

/// How long nothing may move before a keep-alive is sent.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// A command on the host.
pub(super) struct ChannelPipe<'a> {
    session: &'a Session,
    socket: &'a OwnedFd,
    channel: Channel,
    pty: bool,
    mid_packet: bool,
    idle: Duration,
}

impl<'a> ChannelPipe<'a> {
    /// Starts a command. Blocks until the host has taken it, at most the session's time-out.
    pub(super) fn exec(dialled: &'a Dialled, command: &str, pty: bool) -> Result<Self, ssh2::Error> {
        let session = &dialled.session;
        let mut channel = session.channel_session()?;
        if pty {
            channel.request_pty("dumb", None, None)?;
        }
        channel.exec(command)?;
        session.set_blocking(false);
        Ok(Self { session, socket: &dialled.socket, channel, pty, mid_packet: false, idle: Duration::ZERO })
    }

    /// Makes the session ready for the next command. A session that was in trouble is dropped without it.
    pub(super) fn finish(mut self) -> Result<(), ssh2::Error> {
        self.session.set_blocking(true);
        self.channel.close()
    }
}

impl Pipe for ChannelPipe<'_> {
    fn read(&mut self, stream: Stream, buf: &mut [u8]) -> io::Result<usize> {
        let n = match stream {
            Stream::Out => self.channel.read(buf),
            Stream::Err => self.channel.stderr().read(buf),
        }?;
        if n > 0 {
            self.idle = Duration::ZERO;
        } else if !self.channel.eof() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(n)
    }

    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let result = self.channel.write(data);
        // 0 means that the host's window is full; would-block, that a packet is stuck half-way.
        self.mid_packet = result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        if result.as_ref().is_ok_and(|n| *n > 0) {
            self.idle = Duration::ZERO;
        }
        result
    }

    fn mid_packet(&self) -> bool {
        self.mid_packet
    }

    fn close_input(&mut self) -> io::Result<()> {
        if self.pty { self.channel.close() } else { self.channel.send_eof() }.map_err(Into::into)
    }

    fn wait(&mut self, timeout: Duration, sending: bool) -> io::Result<()> {
        // A keep-alive in the middle of another packet could never be finished.
        if self.idle >= KEEPALIVE && !sending {
            self.idle = Duration::ZERO;
            self.session.keepalive_send()?;
        }
        if !wait_for(self.session, self.socket, timeout)? {
            self.idle += timeout;
        }
        Ok(())
    }
}

/// Sleeps until the socket allows what the session waits for; false when the time is over.
pub(super) fn wait_for(session: &Session, socket: &OwnedFd, timeout: Duration) -> io::Result<bool> {
    let mut fds = [PollFd::new(socket, wanted(session))];
    poll_all(&mut fds, timeout)
}

/// What the session waits for. It can always be that the host says something.
pub(super) fn wanted(session: &Session) -> PollFlags {
    match session.block_directions() {
        BlockDirections::Outbound | BlockDirections::Both => PollFlags::IN | PollFlags::OUT,
        BlockDirections::Inbound | BlockDirections::None => PollFlags::IN,
    }
}
