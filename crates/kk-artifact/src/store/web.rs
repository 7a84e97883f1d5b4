//! Files of servers that are not in the catalogue: charts and manifests.

use std::path::Path;

use futures::StreamExt as _;
use reqwest::StatusCode;
use reqwest::header::CONTENT_LENGTH;

use super::download::{Download, Tries};
use super::{ProgressState, Retry, Store, reach};
use crate::client::{self, Failure};
use crate::oci::Fetch;
use crate::{Address, Error, Sha256Sum};

impl Store {
    /// The size of a server's file, as far as the server reports it. An unavailable file is an error.
    pub(crate) async fn size(&self, address: &Address) -> Result<u64, Error> {
        self.online(address)?;
        let response = reach::head(self, address).await.map_err(|problem| problem.of(address))?;
        if response.status() == StatusCode::PARTIAL_CONTENT {
            return Ok(0);
        }
        let length = response.headers().get(CONTENT_LENGTH);
        Ok(length.and_then(|length| length.to_str().ok()?.parse().ok()).unwrap_or(0))
    }

    /// Reads a file up to a maximum size; `note` receives messages about retries.
    pub(crate) async fn read(
        &self,
        address: &Address,
        largest: u64,
        note: &(dyn Fn(String) + Sync),
    ) -> Result<Vec<u8>, Error> {
        self.online(address)?;
        // A server that is down is reported soon.
        let soon = Retry { tries: self.settings.retry.tries.min(reach::TRIES), ..self.settings.retry };
        let (mut tries, mut of_the_host) = (Tries::new(self.settings.retry), Tries::new(soon));
        loop {
            match self.read_once(address, largest).await {
                Ok(bytes) => return Ok(bytes),
                Err(failure) => {
                    let tries = if failure.is_of_the_host() { &mut of_the_host } else { &mut tries };
                    tries.after(failure, address, &|state| told(address, &state, note)).await?;
                }
            }
        }
    }

    async fn read_once(&self, address: &Address, largest: u64) -> Result<Vec<u8>, Failure> {
        let response = client::send(self.client.get(address.url()), address).await?;
        let (mut bytes, mut body) = (Vec::new(), response.bytes_stream());
        while let Some(more) = body.next().await {
            bytes.extend(more.map_err(|error| client::failure(&error, address))?);
            if bytes.len() as u64 > largest {
                let reason = format!("it is larger than {} MiB", largest >> 20);
                return Err(Failure::Permanent(Error::Transfer { address: address.clone(), reason }));
            }
        }
        Ok(bytes)
    }

    /// Downloads a file with a known checksum into the blobs: resumed, retried, verified.
    pub(crate) async fn download(
        &self,
        address: &Address,
        sum: &Sha256Sum,
        fetch: &Fetch<'_>,
    ) -> Result<(), Error> {
        self.online(address)?;
        let part = fetch.blobs.part(sum);
        let mut tag = part.clone().into_os_string();
        tag.push(".tag");
        let done = std::sync::atomic::AtomicU64::new(0);
        let report = |state: ProgressState| {
            use std::sync::atomic::Ordering::Relaxed;
            match state {
                ProgressState::Started { done: before, .. } => done.store(before, Relaxed),
                ProgressState::Advanced { done: now } => {
                    (fetch.came)(now.saturating_sub(done.swap(now, Relaxed)));
                }
                state => told(address, &state, fetch.note),
            }
        };
        let (client, retry, tag) = (&self.client, self.settings.retry, Path::new(&tag));
        Download { client, address, part: &part, tag, sum, retry, report: &report }.run().await?;
        fetch.blobs.keep(&part, sum)
    }

    fn online(&self, address: &Address) -> Result<(), Error> {
        if self.settings.offline { Err(Error::Offline { part: address.to_string() }) } else { Ok(()) }
    }
}

fn told(address: &Address, state: &ProgressState, note: &(dyn Fn(String) + Sync)) {
    if let ProgressState::Retrying { reason, wait } = state {
        note(format!("{address}: {reason}; again in {} s", wait.as_secs()));
    }
}
