//! The calls of a connection and their results.

use std::{path::PathBuf, sync::Arc, time::Duration};

use tokio::sync::mpsc::{Sender, UnboundedSender};
use tokio_util::sync::CancellationToken;

/// How much of each stream is kept for [`Output`], in bytes.
pub(crate) const KEEP: usize = 4 << 20;

/// A POSIX `sh` script for a host. It is sent on standard input, never as an argument, together with small files that it finds in
/// its current directory (a private one, 0700, removed afterwards).
#[derive(Clone)]
pub struct Command {
    /// The text of the script. It runs as root under `sh`, with standard input at its end.
    pub script: Arc<str>,
    /// Small files in the script's directory.
    pub files: Vec<Payload>,
    /// Time limit for this one attempt. It starts when the host begins to run the script.
    pub timeout: Duration,
    /// Ends the remote process group when cancelled.
    pub cancel: CancellationToken,
    /// Receives each line of standard output when it arrives (without its newline), in addition to [`Output::stdout`]. While the
    /// channel is full, or contains 8 MiB of lines, no more output is read: the caller must receive while the script runs.
    pub lines: Option<Sender<String>>,
    /// Bytes of standard output to keep; the end is kept.
    pub keep: usize,
    /// Whether more standard output than [`Command::keep`] ends the script with [`crate::Error::TooLong`]: its end is then
    /// useless without its beginning.
    pub whole: bool,
}

impl Command {
    /// The usual capacity of a channel for [`Command::lines`], in lines.
    pub const LINES: usize = 1024;

    /// A script with no files, a time limit of ten minutes and no cancellation.
    pub fn new(script: impl Into<Arc<str>>) -> Self {
        Self {
            script: script.into(),
            files: Vec::new(),
            timeout: Duration::from_mins(10),
            cancel: CancellationToken::new(),
            lines: None,
            keep: KEEP,
            whole: false,
        }
    }
}

/// A small file that is sent with a script. Its content may be secret: it is never printed.
#[derive(Clone)]
pub struct Payload {
    /// Plain file name (no slash) in the script's directory.
    pub name: String,
    /// The content. The file is 0600.
    pub content: Arc<[u8]>,
}

/// Exit code and output of a script. Both streams are UTF-8 with replacement characters. Of long output only the end is kept:
/// [`Command::keep`] bytes of standard output and 4 MiB of standard error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Exit code; 128 + n for a script ended by signal n.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Files for a host, sent as one stream.
#[derive(Clone)]
pub struct Upload {
    /// The files, in the order in which they are sent.
    pub files: Vec<UploadFile>,
    /// Scripts that run on the host around the transfer, in the same round trip.
    pub hooks: UploadHooks,
    /// Time limit for the whole stream.
    pub timeout: Duration,
    /// Stops the stream. Targets that are not renamed into place yet stay untouched.
    pub cancel: CancellationToken,
    /// Receives the number of bytes sent since the last message.
    pub progress: Option<UnboundedSender<u64>>,
}

/// Scripts around an [`Upload`]. They run as root under `sh -e`, in a private directory that holds their files, and end
/// with the upload's cancellation and with the connection.
#[derive(Clone, Default)]
pub struct UploadHooks {
    /// Sourced by the shell of the upload before everything else. A file that it opens as descriptor 8 stays open until the upload
    /// has ended, and no other hook inherits it. It ends the upload by `exit`.
    pub lock: Option<Arc<str>>,
    /// Runs before anything is written. If it fails, no file is sent and no target is touched.
    pub before: Option<Arc<str>>,
    /// Runs when all files are in place.
    pub after: Option<Arc<str>>,
    /// Small files for all hooks. The names `manifest`, `lock`, `before` and `after` are reserved.
    pub files: Vec<Payload>,
}

/// One file of an [`Upload`].
#[derive(Clone, Debug)]
pub struct UploadFile {
    /// Path of its content on the control machine.
    pub source: PathBuf,
    /// Absolute path on the host. Missing parent directories are created, 0755 and owned by root.
    pub target: String,
    /// Permission bits.
    pub mode: u32,
    /// SHA-256 of the content in lower-case hex, compared on the host before the rename.
    pub sha256: String,
}

/// The result of an upload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UploadOutcome {
    /// Bytes of content that were sent.
    pub bytes: u64,
}

/// The cost of a connection: the metrics that benches and the report show.
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
