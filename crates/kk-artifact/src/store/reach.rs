//! Checks whether all missing files can be downloaded.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use reqwest::header::{CONTENT_LENGTH, RANGE};
use reqwest::{Response, StatusCode};

use super::download::Tries;
use super::{Retry, Store};
use crate::client::{self, Failure};
use crate::{Address, Artifact, Checksum, Error};

/// Concurrent requests; they are small.
const PARALLEL: usize = 16;
/// A server that is down is reported soon, not after all attempts of a download.
pub(super) const TRIES: u32 = 2;

pub(super) async fn check(store: &Store, artifacts: &[Artifact]) -> Result<u64, Vec<Error>> {
    let answers: Vec<_> = futures::stream::iter(artifacts)
        .map(|artifact| ask(store, artifact))
        .buffered(PARALLEL)
        .collect()
        .await;
    let mut bytes = 0;
    let mut errors = Vec::new();
    let mut unreachable: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for (artifact, answer) in artifacts.iter().zip(answers) {
        match answer {
            Ok(size) => bytes += size,
            Err(Problem::Host { host, reason }) => {
                unreachable.entry((host, reason)).or_default().push(artifact.to_string());
            }
            Err(Problem::File(error)) => errors.push(error),
        }
    }
    errors.extend(unreachable.into_iter().map(|((host, reason), files)| Error::Unreachable {
        host,
        reason,
        files,
    }));
    if errors.is_empty() { Ok(bytes) } else { Err(errors) }
}

pub(super) enum Problem {
    /// Concerns the whole server, so it is reported once.
    Host {
        host: String,
        reason: String,
    },
    File(Error),
}

impl Problem {
    /// The error for this address.
    pub(super) fn of(self, address: &Address) -> Error {
        match self {
            Self::Host { reason, .. } => Error::Transfer { address: address.clone(), reason },
            Self::File(error) => error,
        }
    }
}

/// Bytes to download for this artifact; also 0 if the server does not report the size.
async fn ask(store: &Store, artifact: &Artifact) -> Result<u64, Problem> {
    if store.cached(artifact).await.is_some() {
        return Ok(0);
    }
    if let Checksum::Published(address) = &artifact.checksum {
        head(store, address).await?;
    }
    let response = head(store, &artifact.address).await?;
    if response.status() == StatusCode::PARTIAL_CONTENT {
        return Ok(0);
    }
    let length = response.headers().get(CONTENT_LENGTH);
    Ok(length.and_then(|length| length.to_str().ok()?.parse().ok()).unwrap_or(0))
}

/// The answer to `HEAD`, or to `GET` of the first byte if the server does not allow `HEAD`.
pub(super) async fn head(store: &Store, address: &Address) -> Result<Response, Problem> {
    let mut tries =
        Tries::new(Retry { tries: store.settings.retry.tries.min(TRIES), ..store.settings.retry });
    loop {
        let request = store.client.head(address.url());
        let mut answer = client::send(request, address).await;
        if let Err(Failure::Permanent(Error::Status { .. })) = &answer {
            answer = client::send(store.client.get(address.url()).header(RANGE, "bytes=0-0"), address).await;
        }
        let failure = match answer {
            Ok(response) => return Ok(response),
            Err(failure) => failure,
        };
        let of_the_host = failure.is_of_the_host();
        match tries.after(failure, address, &|_| ()).await {
            Ok(()) => {}
            Err(Error::Transfer { reason, .. }) if of_the_host => {
                return Err(Problem::Host { host: address.host(), reason });
            }
            Err(error) => return Err(Problem::File(error)),
        }
    }
}
