//! Runs commands and transfers files on hosts: over SSH, on the control machine, or on a fake host for tests.
//!
//! All crates above this one access a host through [`Connection`]. One call of [`Connection::run`] or [`Connection::upload`] is
//! one round trip, and [`Stats`] counts them: the engine is designed to need few round trips (see ARCHITECTURE.md).

mod command;
mod error;
mod exchange;
mod fake;
mod learnt;
mod local;
mod nonce;
mod poll;
mod quote;
mod ssh;
mod stats;

pub use command::{Command, Output, Payload, Stats, Upload, UploadFile, UploadHooks, UploadOutcome};
pub use error::{Error, ErrorKind};
pub use fake::{FakeFile, FakeHost};
pub use learnt::{LearntKey, LearntKeys};
pub use local::LocalConnection;
pub use nonce::nonce;
pub use quote::quote;
pub use ssh::{HostKeyPolicy, SshConfig, SshConnection};

use async_trait::async_trait;

/// A connection to one host. Cheap to share (`Arc`). Calls from several tasks at once are allowed and run concurrently, each on a
/// session of its own.
#[async_trait]
pub trait Connection: Send + Sync {
    /// The name of the host as the user wrote it, for messages.
    fn host(&self) -> &str;

    /// Runs a script as root and waits for its end.
    ///
    /// A script that ends with a code other than 0 is not an error of the connection: check [`Output::code`]. The remote process
    /// group ends with the command's timeout, with its cancellation and with the connection itself.
    async fn run(&self, command: Command) -> Result<Output, Error>;

    /// Streams files from the control machine to the host in one round trip, with the hooks of the upload around it. Each file
    /// arrives completely or not at all: it is written next to its target, verified by SHA-256 on the host, then renamed over the
    /// target.
    async fn upload(&self, upload: Upload) -> Result<UploadOutcome, Error>;

    /// Reads a file of the host as root. A file over `limit` bytes is an error.
    async fn download(&self, path: &str, limit: u64) -> Result<Vec<u8>, Error> {
        let bytes = self.read_part(path, 0, limit.saturating_add(1)).await?;
        if bytes.len() as u64 > limit {
            let reason = format!("it is larger than {limit} bytes");
            return Err(Error::Read { host: self.host().to_owned(), path: path.to_owned(), reason });
        }
        Ok(bytes)
    }

    /// Reads at most `most` bytes of a host's file as root, from `offset` on. Fewer bytes mean that the file ends there.
    async fn read_part(&self, path: &str, offset: u64, most: u64) -> Result<Vec<u8>, Error>;

    /// The cost of this connection so far.
    fn stats(&self) -> Stats;

    /// Host keys that were seen for the first time and are trusted now, since the last call.
    fn learnt(&self) -> Vec<LearntKey> {
        Vec::new()
    }

    /// Closes the idle sessions. Later calls dial again.
    async fn close(&self);
}
