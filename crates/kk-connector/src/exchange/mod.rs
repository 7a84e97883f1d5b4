//! One conversation with a host's shell: the code that SSH and the local connection share.
//!
//! A [`Call`] specifies what to run. [`opening`] turns it into a short command line and the bytes for its standard input.
//! [`drive`] moves bytes over a [`Pipe`] until the script has ended. [`frame`] extracts the script's output from the other output
//! of a login shell. A call is owned by the thread that drives it.

mod body;
mod download;
mod drive;
mod frame;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod hostile;
mod lines;
mod opening;
mod root;
mod run;
#[cfg(test)]
mod tests;
mod upload;

pub(crate) use body::Body;
pub(crate) use drive::{Failure, drive, plain};
pub(crate) use lines::Lines;
pub(crate) use opening::Opening;
pub(crate) use root::{Plain, Root, find_root};

use std::{io, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::{
    Command, Connection, Error, LearntKey, Output, Payload, Stats, Upload, UploadOutcome, command::KEEP,
    stats::Counters,
};

/// One of a script's output streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Out,
    Err,
}

/// The three standard streams of a command on a host. No operation blocks, except `wait`.
pub(crate) trait Pipe {
    /// Reads the available bytes: `WouldBlock` for nothing yet, 0 for the end.
    fn read(&mut self, stream: Stream, buf: &mut [u8]) -> io::Result<usize>;
    /// Sends some of `data`; after `WouldBlock` the same data must be offered again.
    fn write(&mut self, data: &[u8]) -> io::Result<usize>;
    /// Whether a packet is partly sent, so that the next write must finish it.
    fn mid_packet(&self) -> bool;
    /// Ends the command's input. On a terminal: hangs up.
    fn close_input(&mut self) -> io::Result<()>;
    /// Sleeps until a stream may be ready, at most `timeout`.
    fn wait(&mut self, timeout: Duration, sending: bool) -> io::Result<()>;
}

/// The other end of a script's live output, or of its input.
pub(crate) enum Side {
    /// None: the output is read when the script has ended.
    Quiet,
    /// Each line is passed to a receiver.
    Lines(Lines),
    /// The script receives files.
    Body(Body),
}

impl Side {
    /// Handles a line of the script's standard output.
    fn take_line(&mut self, line: &[u8]) {
        match self {
            Self::Quiet => {}
            Self::Lines(lines) => lines.push(line),
            Self::Body(body) => body.take_line(line),
        }
    }

    /// Whether all lines have been passed on, so that more output can be read.
    fn is_delivered(&mut self) -> bool {
        match self {
            Self::Lines(lines) => lines.deliver(),
            Self::Quiet | Self::Body(_) => true,
        }
    }
}

/// One script to run as root.
pub(crate) struct Call {
    pub(crate) script: Arc<str>,
    pub(crate) files: Vec<Payload>,
    pub(crate) timeout: Duration,
    pub(crate) cancel: CancellationToken,
    pub(crate) side: Side,
    /// Bytes of standard output to keep (the end is kept).
    pub(crate) keep: usize,
    /// Whether more standard output ends the script with an error.
    pub(crate) whole: bool,
}

impl Call {
    /// A quiet call.
    pub(crate) fn new(script: Arc<str>, timeout: Duration, cancel: CancellationToken) -> Self {
        Self { script, files: Vec::new(), timeout, cancel, side: Side::Quiet, keep: KEEP, whole: false }
    }
}

/// The result of a call.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// Bytes of file content that were sent.
    pub(crate) body_sent: u64,
    /// Bytes received on both streams.
    pub(crate) received: u64,
}

/// Names for error messages.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) host: String,
    pub(crate) user: String,
}

/// Can carry out a [`Call`]; this makes it a [`Connection`].
#[async_trait]
pub(crate) trait Caller: Send + Sync {
    fn peer(&self) -> &Peer;
    fn counters(&self) -> &Counters;
    async fn call(&self, call: Call) -> Result<Reply, Error>;
    /// Host keys that were learnt since the last call.
    fn learnt(&self) -> Vec<LearntKey> {
        Vec::new()
    }
    /// Closes the idle sessions.
    fn close_idle(&self);
}

#[async_trait]
impl<T: Caller> Connection for T {
    fn host(&self) -> &str {
        &self.peer().host
    }

    async fn run(&self, command: Command) -> Result<Output, Error> {
        run::run(self, command).await
    }

    async fn upload(&self, upload: Upload) -> Result<UploadOutcome, Error> {
        upload::upload(self, upload).await
    }

    async fn read_part(&self, path: &str, offset: u64, most: u64) -> Result<Vec<u8>, Error> {
        download::read_part(self, path, offset, most).await
    }

    fn stats(&self) -> Stats {
        self.counters().stats()
    }

    fn learnt(&self) -> Vec<LearntKey> {
        Caller::learnt(self)
    }

    async fn close(&self) {
        self.close_idle();
    }
}

/// The last lines of a text, each of limited length, for an error message.
pub(crate) fn last_lines(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(5)..].iter();
    last.map(|line| line.chars().take(500).collect()).collect::<Vec<String>>().join("; ")
}
