//! What is asked of a connection, and what comes back.

use std::{path::PathBuf, sync::Arc, time::Duration};

use tokio::sync::mpsc::{Sender, UnboundedSender};
use tokio_util::sync::CancellationToken;

/// How much of each stream is kept for [`Output`], in bytes.
pub(crate) const KEEP: usize = 4 << 20;

/// A POSIX `sh` script for a host. It travels on standard input, never as an argument, together with small files
/// that it finds in its current directory (a private one, 0700, removed afterwards).
#[derive(Clone)]
pub struct Command {
    /// The text of the script. It runs as root under `sh`, with standard input at its end.
    pub script: Arc<str>,
    /// Small files beside the script.
    pub files: Vec<Payload>,
    /// Time for this one attempt, counted from the moment when the host has begun with it.
    pub timeout: Duration,
    /// Ends the remote process group when cancelled.
    pub cancel: CancellationToken,
    /// Gets each line of standard output when it arrives (without its newline), in addition to [`Output::stdout`]. While the channel
    /// is full, or has 8 MiB of lines, no more output is read: the caller must receive while the script runs.
    pub lines: Option<Sender<String>>,
    /// Bytes of standard output to keep; the end is kept.
    pub keep: usize,
}

impl Command {
    /// How many lines a channel for [`Command::lines`] holds, as a rule.
    pub const LINES: usize = 1024;

    /// A script with no files, ten minutes of time and no cancellation.
    pub fn new(script: impl Into<Arc<str>>) -> Self {
        Self {
            script: script.into(),
            files: Vec::new(),
            timeout: Duration::from_mins(10),
            cancel: CancellationToken::new(),
            lines: None,
            keep: KEEP,
        }
    }
}

/// A small file that travels with a script. Its content may be secret: it is never printed.
#[derive(Clone)]
pub struct Payload {
    /// Plain file name (no slash) in the script's directory.
    pub name: String,
    /// The content. The file is 0600.
    pub content: Arc<[u8]>,
}

/// What a script said. Both streams are UTF-8 with replacement characters. Of standard output [`Command::keep`] bytes are kept,
/// of standard error 4 MiB: in each case the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Exit code; 128 + n for a script ended by signal n.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Bytes of standard output that were printed before [`Output::stdout`] and not kept.
    pub dropped: u64,
}

/// Files for a host, sent as one stream.
#[derive(Clone)]
pub struct Upload {
    /// The files, in the order in which they are wanted.
    pub files: Vec<UploadFile>,
    /// What runs on the host around the transfer, in the same round trip.
    pub hooks: UploadHooks,
    /// Time for the whole stream.
    pub timeout: Duration,
    /// Stops the stream; no target is touched by what had not been renamed yet.
    pub cancel: CancellationToken,
    /// Gets the number of bytes sent since the last message.
    pub progress: Option<UnboundedSender<u64>>,
}

/// Scripts around an [`Upload`]. They run as root under `sh -e`, in a private directory that holds their files, and end
/// with the upload's cancellation and with the connection.
#[derive(Clone, Default)]
pub struct UploadHooks {
    /// Read by the shell of the upload before all else: what it opens as descriptor 8 stays open until the upload has
    /// ended, and no other hook inherits it. It ends the upload by `exit`.
    pub lock: Option<Arc<str>>,
    /// Runs before anything is written. When it fails, nothing travels and no target is touched.
    pub before: Option<Arc<str>>,
    /// Runs when all files are in place.
    pub after: Option<Arc<str>>,
    /// Small files for all of them. The names `manifest`, `lock`, `before` and `after` are taken.
    pub files: Vec<Payload>,
}

/// One file of an [`Upload`].
#[derive(Clone, Debug)]
pub struct UploadFile {
    /// Where its content is on this machine.
    pub source: PathBuf,
    /// Absolute path on the host. Missing parent directories are made, 0755 and root's.
    pub target: String,
    /// Permission bits.
    pub mode: u32,
    /// SHA-256 of the content in lower-case hex, compared on the host before the rename.
    pub sha256: String,
}

/// What an upload did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UploadOutcome {
    /// Bytes of content that travelled.
    pub bytes: u64,
}

/// What a connection has cost: the figures that benches and the report show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Scripts, uploads and downloads, each attempt counted.
    pub round_trips: u64,
    /// Bytes sent to the host (content, before encryption).
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
    /// Sessions dialled.
    pub sessions: u64,
}
