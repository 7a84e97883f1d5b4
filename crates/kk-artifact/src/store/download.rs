//! [`Download`]: downloads one file over HTTP into a partial file: resumed, retried, verified.

use std::path::Path;
use std::time::Duration;

use futures::StreamExt as _;
use reqwest::header::{CONTENT_RANGE, ETAG, HeaderMap, HeaderValue, IF_RANGE, LAST_MODIFIED, RANGE};
use reqwest::{Client, Response, StatusCode};
use sha2::{Digest as _, Sha256};
use tokio::fs::{self, File, OpenOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufWriter};

use super::{ProgressState, Retry};
use crate::client::{self, Failure};
use crate::{Address, Error, Sha256Sum};

/// Bytes between two [`ProgressState::Advanced`], and in one write.
const STEP: usize = 512 * 1024;

pub(super) struct Download<'a, R> {
    pub(super) client: &'a Client,
    pub(super) address: &'a Address,
    /// The target of the bytes; complete and verified after [`Download::run`].
    pub(super) part: &'a Path,
    /// Stores the version of the file that the partial file belongs to (`ETag` or `Last-Modified`).
    pub(super) tag: &'a Path,
    pub(super) sum: &'a Sha256Sum,
    pub(super) retry: Retry,
    pub(super) report: &'a R,
}

/// The content of a partial file.
struct Part {
    hasher: Sha256,
    size: u64,
}

impl<R: Fn(ProgressState) + Sync> Download<'_, R> {
    /// After a wrong checksum, retries once from the first byte, because the partial file may be of an earlier, different file.
    pub(super) async fn run(&self) -> Result<(), Error> {
        if self.transfer().await?.is_ok() {
            return Ok(());
        }
        let reason = "the SHA-256 is wrong; downloading again from the start".to_owned();
        (self.report)(ProgressState::Retrying { reason, wait: Duration::ZERO });
        self.transfer().await?.map_err(|actual| Error::WrongSum {
            address: self.address.clone(),
            expected: self.sum.clone(),
            actual,
        })
    }

    /// One complete transfer. The inner error is the checksum of a wrong file, which is removed.
    async fn transfer(&self) -> Result<Result<(), Sha256Sum>, Error> {
        let actual = self.to_its_end().await?;
        self.remove(self.tag).await?;
        if actual == *self.sum {
            return Ok(Ok(()));
        }
        self.remove(self.part).await?;
        Ok(Err(actual))
    }

    /// Retries until the body is complete; returns the checksum of the whole file.
    async fn to_its_end(&self) -> Result<Sha256Sum, Error> {
        let mut tries = Tries::new(self.retry);
        let mut largest = 0;
        loop {
            let part = self.read_part().await?;
            if part.size > largest {
                // There is progress, so the count of attempts starts again.
                largest = part.size;
                tries = Tries::new(self.retry);
            }
            if part.size > 0 && Sha256Sum::of(part.hasher.clone()) == *self.sum {
                return Ok(self.sum.clone());
            }
            match self.attempt(part).await {
                Ok(sum) => return Ok(sum),
                Err(failure) => tries.after(failure, self.address, self.report).await?,
            }
        }
    }

    async fn attempt(&self, part: Part) -> Result<Sha256Sum, Failure> {
        let mut request = self.client.get(self.address.url());
        if part.size > 0 {
            request = request.header(RANGE, format!("bytes={}-", part.size));
            // Without a tag, or with a tag damaged by a power cut, only the checksum shows that the parts do not belong together.
            if let Some(tag) = fs::read(self.tag).await.ok().and_then(|tag| HeaderValue::try_from(tag).ok()) {
                request = request.header(IF_RANGE, tag);
            }
        }
        let response = client::send(request, self.address).await?;
        match response.status() {
            StatusCode::RANGE_NOT_SATISFIABLE => Err(self
                .discard(
                    "the server's file is shorter than the data that was downloaded \
                                  before",
                )
                .await),
            StatusCode::PARTIAL_CONTENT => match ContentRange::of(response.headers()) {
                Some(range) if range.start == part.size => self.receive(response, part, range.total).await,
                _ => Err(self.discard("the server sends another range than requested").await),
            },
            _ => {
                let total = response.content_length();
                self.receive(response, Part { hasher: Sha256::new(), size: 0 }, total).await
            }
        }
    }

    /// Appends the body to the partial file. `total` is the size of the file, if the server reports it.
    async fn receive(
        &self,
        response: Response,
        mut part: Part,
        total: Option<u64>,
    ) -> Result<Sha256Sum, Failure> {
        (self.report)(ProgressState::Started { done: part.size, total });
        let file = self.open(&part, response.headers()).await.map_err(Failure::Permanent)?;
        let mut file = BufWriter::with_capacity(STEP, file);
        let mut reported = part.size;
        let mut body = response.bytes_stream();
        let cut = loop {
            match body.next().await {
                Some(Ok(bytes)) => {
                    file.write_all(&bytes).await.map_err(|e| self.unwritable(e))?;
                    part.hasher.update(&bytes);
                    part.size += bytes.len() as u64;
                }
                Some(Err(error)) => break Some(client::failure(&error, self.address)),
                None => break None,
            }
            if part.size - reported >= STEP as u64 {
                reported = part.size;
                (self.report)(ProgressState::Advanced { done: reported });
            }
        };
        // The bytes before an interruption are kept for the next attempt.
        file.flush().await.map_err(|e| self.unwritable(e))?;
        if let Some(failure) = cut {
            return Err(failure);
        }
        file.get_ref().sync_all().await.map_err(|e| self.unwritable(e))?;
        (self.report)(ProgressState::Advanced { done: part.size });
        // The checksum covers the bytes received. It proves nothing if the disk contains other bytes: the last write of a
        // cancelled run may arrive after its lock was released.
        if file.get_ref().metadata().await.map_err(|e| self.unwritable(e))?.len() != part.size {
            return Err(self.discard("another process changed the partial file").await);
        }
        if total.is_some_and(|total| part.size < total) {
            return Err(transient("the server sends the rest in pieces"));
        }
        Ok(Sha256Sum::of(part.hasher))
    }

    /// Removes the partial file, so that the next attempt begins at the first byte.
    async fn discard(&self, reason: &str) -> Failure {
        match self.remove(self.part).await {
            Ok(()) => transient(reason),
            Err(error) => Failure::Permanent(error),
        }
    }

    /// Opens the partial file for appending; for a new one, stores the version that the server reports.
    async fn open(&self, part: &Part, headers: &HeaderMap) -> Result<File, Error> {
        let new = part.size == 0;
        if new {
            match version_tag(headers) {
                Some(tag) => fs::write(self.tag, tag).await.map_err(Error::file("write", self.tag))?,
                None => self.remove(self.tag).await?,
            }
        }
        let mut options = OpenOptions::new();
        let options =
            if new { options.write(true).create(true).truncate(true) } else { options.append(true) };
        options.open(self.part).await.map_err(Error::file("write", self.part))
    }

    fn unwritable(&self, source: std::io::Error) -> Failure {
        Failure::Permanent(Error::file("write", self.part)(source))
    }

    async fn read_part(&self) -> Result<Part, Error> {
        let mut part = Part { hasher: Sha256::new(), size: 0 };
        let mut file = match File::open(self.part).await {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(part),
            Err(error) => return Err(Error::file("read", self.part)(error)),
        };
        let mut buffer = vec![0; STEP];
        loop {
            let read = file.read(&mut buffer).await.map_err(Error::file("read", self.part))?;
            if read == 0 {
                return Ok(part);
            }
            part.hasher.update(&buffer[..read]);
            part.size += read as u64;
        }
    }

    async fn remove(&self, path: &Path) -> Result<(), Error> {
        match fs::remove_file(path).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::file("remove", path)(error))
            }
            _ => Ok(()),
        }
    }
}

/// Counts the attempts of one request and waits between them.
pub(super) struct Tries {
    retry: Retry,
    failed: u32,
}

impl Tries {
    pub(super) fn new(retry: Retry) -> Self {
        Self { retry, failed: 0 }
    }

    /// Waits before the next attempt, or returns the final error.
    pub(super) async fn after(
        &mut self,
        failure: Failure,
        address: &Address,
        report: &impl Fn(ProgressState),
    ) -> Result<(), Error> {
        let reason = match failure {
            Failure::Permanent(error) => return Err(error),
            Failure::Certificate(reason) => return Err(Error::Transfer { address: address.clone(), reason }),
            Failure::Transient { reason, .. } => reason,
        };
        self.failed += 1;
        if self.failed >= self.retry.tries {
            return Err(Error::Transfer { address: address.clone(), reason });
        }
        let wait = jittered(self.retry.wait * 2_u32.saturating_pow(self.failed - 1));
        report(ProgressState::Retrying { reason, wait });
        tokio::time::sleep(wait).await;
        Ok(())
    }
}

/// Between half of `wait` and all of it, so that many clients do not retry at the same time.
fn jittered(wait: Duration) -> Duration {
    use std::hash::{BuildHasher as _, RandomState};
    // A new `RandomState` has a new random key: enough randomness for this, without a crate for it.
    let random = RandomState::new().hash_one(0) % 1000;
    wait / 2 + wait / 2 * u32::try_from(random).expect("below 1000") / 1000
}

/// The value for `If-Range`: a strong `ETag`, otherwise the time of the last change.
fn version_tag(headers: &HeaderMap) -> Option<&str> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    text(ETAG).filter(|tag| !tag.starts_with("W/")).or_else(|| text(LAST_MODIFIED))
}

fn transient(reason: &str) -> Failure {
    Failure::Transient { reason: reason.to_owned(), connecting: false }
}

/// `Content-Range: bytes 5-9/10`; the total may be `*`.
struct ContentRange {
    start: u64,
    total: Option<u64>,
}

impl ContentRange {
    fn of(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get(CONTENT_RANGE)?.to_str().ok()?.strip_prefix("bytes ")?;
        let (range, total) = text.split_once('/')?;
        Some(Self { start: range.split('-').next()?.parse().ok()?, total: total.parse().ok() })
    }
}
