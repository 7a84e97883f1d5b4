//! A channel of a session as a [`Pipe`].

use std::{
    io::{self, Read, Write},
    time::{Duration, Instant},
};

use rustix::event::PollFlags;
use ssh2::Channel;

use super::{session::SshSession, silence::Silence};
use crate::{
    exchange::{Pipe, Stream},
    poll::poll_all,
};

/// A command on the host.
pub(super) struct ChannelPipe<'a> {
    session: &'a SshSession,
    channel: Channel,
    pty: bool,
    mid_packet: bool,
    silence: Silence,
    /// When the socket was last checked for data from the host.
    listened: Instant,
}

impl<'a> ChannelPipe<'a> {
    /// Starts a command. Blocks until the host has accepted it, at most the session's timeout for each step.
    pub(super) fn exec(
        session: &'a SshSession,
        command: &str,
        pty: bool,
        patience: Duration,
    ) -> Result<Self, ssh2::Error> {
        let mut channel = session.session.channel_session()?;
        let terminal = if pty { channel.request_pty("dumb", None, None) } else { Ok(()) };
        let taken = terminal.and_then(|()| channel.exec(command));
        // Also after a failure: when a blocking channel is dropped, it waits for the host's closing message.
        session.session.set_blocking(false);
        taken?;
        Ok(Self {
            session,
            channel,
            pty,
            mid_packet: false,
            silence: Silence::new(patience),
            listened: Instant::now(),
        })
    }

    /// Makes the session ready for the next command. After a failure, the session is dropped instead.
    pub(super) fn finish(mut self) -> Result<(), ssh2::Error> {
        self.session.session.set_blocking(true);
        self.channel.close().inspect_err(|_| self.session.session.set_blocking(false))
    }

    /// Whether a packet could be sent completely.
    fn can_send(&self) -> io::Result<bool> {
        let mut fds = [self.session.poll_fd(PollFlags::OUT)];
        Ok(!self.mid_packet && poll_all(&mut fds, Duration::ZERO)?)
    }

    /// Waits until the host has sent data or, if requested, accepts data. Returns whether the host has sent data.
    fn listen(&mut self, timeout: Duration) -> io::Result<bool> {
        let mut fds = [self.session.poll_fd(self.session.wanted())];
        poll_all(&mut fds, timeout)?;
        let said = fds[0].revents().intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR);
        if said {
            self.silence.end();
        } else {
            // Also if the socket accepts data and libssh2 has nothing to send: such a wait ends at once.
            self.silence.go_on(self.listened.elapsed().min(timeout));
        }
        self.listened = Instant::now();
        Ok(said)
    }

    /// Checks for the answer to a keep-alive before libssh2 reads it: libssh2 does not report such answers.
    fn notice_answer(&mut self) -> io::Result<()> {
        if self.silence.is_asked() {
            self.listen(Duration::ZERO)?;
        }
        Ok(())
    }
}

impl Pipe for ChannelPipe<'_> {
    fn read(&mut self, stream: Stream, buf: &mut [u8]) -> io::Result<usize> {
        self.notice_answer()?;
        let n = match stream {
            Stream::Out => self.channel.read(buf),
            Stream::Err => self.channel.stderr().read(buf),
        }?;
        if n > 0 {
            self.silence.end();
        } else if !self.channel.eof() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(n)
    }

    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.notice_answer()?;
        let result = self.channel.write(data);
        // 0 means that the host's window is full; would-block means that a packet is partly sent.
        self.mid_packet = result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        if result.as_ref().is_ok_and(|n| *n > 0) {
            // A host that does not read accepts no more bytes than its window.
            self.silence.end();
        }
        result
    }

    fn mid_packet(&self) -> bool {
        self.mid_packet
    }

    fn close_input(&mut self) -> io::Result<()> {
        let result = if self.pty { self.channel.close() } else { self.channel.send_eof() };
        let result = result.map_err(io::Error::from);
        self.mid_packet = result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        result
    }

    fn wait(&mut self, timeout: Duration, _sending: bool) -> io::Result<()> {
        if self.listen(timeout)? {
            return Ok(());
        }
        if let Some(silent) = self.silence.too_long() {
            let text = format!("no data from it for {:.0} s", silent.as_secs_f64());
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
        if self.silence.is_to_ask() && self.can_send()? {
            self.session.keep_alive()?;
            self.silence.ask();
            self.listen(timeout)?;
        }
        Ok(())
    }
}
