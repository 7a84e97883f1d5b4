//! Connects through another host: one session on the bastion for each session behind it.
//!
//! libssh2 wants a socket, so the session behind the bastion talks to one end of a socket pair. A thread owns the
//! other end and the bastion's session, and moves bytes between them until either side ends.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    thread,
    time::Duration,
};

use rustix::event::{PollFd, PollFlags};
use ssh2::Channel;

use super::{
    config::SshConfig,
    errors::{unreachable, words},
    session::SshSession,
};
use crate::{Error, poll::poll_all};

/// Time without traffic before a keep-alive.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// Bytes moved at once: the content of one SSH packet.
const PIECE: usize = 32 << 10;

/// Opens a stream to `target` through a session on the bastion.
pub(super) fn tunnel(
    session: SshSession,
    bastion: &SshConfig,
    target: &SshConfig,
) -> Result<UnixStream, Error> {
    let channel =
        session.session.channel_direct_tcpip(&target.address, target.port, None).map_err(|error| {
            unreachable(target, &format!("through {}: {}", bastion.place(), words(bastion, &error)))
        })?;
    let (near, far) = UnixStream::pair().map_err(|error| unreachable(target, &error.to_string()))?;
    far.set_nonblocking(true).map_err(|error| unreachable(target, &error.to_string()))?;
    session.session.set_blocking(false);
    let mut pump = Pump {
        session,
        channel,
        stream: far,
        inward: Buffer::default(),
        outward: Buffer::default(),
        quiet: false,
    };
    thread::Builder::new()
        .name(format!("bastion for {}", target.name))
        // When the thread ends, it closes the stream, and the session behind the stream reports that.
        .spawn(move || pump.work())
        .map_err(|error| unreachable(target, &error.to_string()))?;
    Ok(near)
}

struct Pump {
    session: SshSession,
    channel: Channel,
    stream: UnixStream,
    /// From the bastion to the control machine.
    inward: Buffer,
    /// From the control machine to the bastion.
    outward: Buffer,
    /// No traffic in either direction for [`KEEPALIVE`].
    quiet: bool,
}

/// Bytes that were read and are not written yet.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    offset: usize,
    ended: bool,
}

impl Buffer {
    fn is_empty(&self) -> bool {
        self.offset == self.bytes.len()
    }

    /// Reads if empty, writes the buffered bytes; true if bytes moved.
    fn advance(&mut self, from: &mut dyn Read, to: &mut dyn Write) -> io::Result<bool> {
        let mut moved = false;
        if self.is_empty() && !self.ended {
            self.bytes.resize(PIECE, 0);
            let n = or_pending(from.read(&mut self.bytes))?;
            self.ended = n == Some(0);
            self.bytes.truncate(n.unwrap_or(0));
            self.offset = 0;
            moved = n.is_some();
        }
        if !self.is_empty() {
            let n = or_pending(to.write(&self.bytes[self.offset..]))?.unwrap_or(0);
            self.offset += n;
            moved |= n > 0;
        }
        Ok(moved)
    }
}

/// `None` when it would block.
fn or_pending(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(n) => Ok(Some(n)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// A channel that distinguishes "nothing yet" from its end.
struct ChannelReader<'a>(&'a mut Channel);

impl Read for ChannelReader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buf)? {
            0 if !self.0.eof() => Err(io::ErrorKind::WouldBlock.into()),
            n => Ok(n),
        }
    }
}

impl Pump {
    fn work(&mut self) -> io::Result<()> {
        loop {
            let out = self.outward.advance(&mut self.stream, &mut self.channel)?;
            let inn = self.inward.advance(&mut ChannelReader(&mut self.channel), &mut self.stream)?;
            if (self.outward.ended && self.outward.is_empty())
                || (self.inward.ended && self.inward.is_empty())
            {
                return Ok(());
            }
            if !out && !inn {
                self.wait()?;
            }
        }
    }

    fn wait(&mut self) -> io::Result<()> {
        // A keep-alive in the middle of another packet could never be finished.
        if self.quiet && self.outward.is_empty() {
            self.session.keep_alive()?;
        }
        let mut near = PollFlags::empty();
        near.set(PollFlags::IN, self.outward.is_empty());
        near.set(PollFlags::OUT, !self.inward.is_empty());
        let mut fds = [self.session.poll_fd(self.session.wanted()), PollFd::new(&self.stream, near)];
        self.quiet = !poll_all(&mut fds, KEEPALIVE)?;
        // A read would show it too, but nothing is read until the bastion has accepted the buffered bytes.
        if fds[1].revents().contains(PollFlags::HUP) && !self.outward.is_empty() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }
}
