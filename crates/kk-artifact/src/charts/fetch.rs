//! Fetches charts and manifests that were found and are not in the store.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use kk_config::{ChartSource, ManifestFile};
use tokio::sync::OwnedMutexGuard;

use super::find::{Found, Place};
use super::{Identity, Kept, LARGEST, SERVER, identity, local, no_chart, no_file};
use crate::oci::{Blobs, Fetch};
use crate::store::blocking;
use crate::{Address, Error, Sha256Sum, Store};

/// Maximum number of concurrent files.
const PARALLEL: usize = 4;

/// A chart that is in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chart {
    pub(crate) source: ChartSource,
    pub(crate) identity: Identity,
    pub(crate) kept: Kept,
}

/// A manifest that is in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) file: ManifestFile,
    pub(crate) kept: Kept,
}

/// Downloads in progress, by checksum: two sources may have the same content.
#[derive(Default)]
struct Running(Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>);

impl Running {
    /// Waits until no other task fetches content with this checksum. Afterwards it may be in the store.
    async fn alone(&self, sum: &Sha256Sum) -> OwnedMutexGuard<()> {
        let one = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(sum.to_string()).or_default())
        };
        one.lock_owned().await
    }
}

impl Found<'_> {
    /// Fetches all of it.
    pub(crate) async fn fetch(
        &self,
        store: &Store,
        fetch: &Fetch<'_>,
    ) -> Result<(Vec<Chart>, Vec<File>), Error> {
        let running = Running::default();
        let means = &Means { store, fetch, running: &running };
        let charts = futures::stream::iter(&self.charts)
            .map(|(source, place)| chart(source, place, means))
            .buffered(PARALLEL)
            .collect::<Vec<_>>();
        let files = futures::stream::iter(&self.files)
            .map(|(wanted, place)| file(wanted, place, means))
            .buffered(PARALLEL)
            .collect::<Vec<_>>();
        let (charts, files) = tokio::join!(charts, files);
        Ok((charts.into_iter().collect::<Result<_, _>>()?, files.into_iter().collect::<Result<_, _>>()?))
    }
}

/// The resources for fetching.
struct Means<'a> {
    store: &'a Store,
    fetch: &'a Fetch<'a>,
    running: &'a Running,
}

async fn chart(
    source: &ChartSource,
    place: &Place<(Identity, Kept)>,
    means: &Means<'_>,
) -> Result<Chart, Error> {
    let kept = match place {
        Place::Here((identity, kept)) => {
            let (identity, kept) = (identity.clone(), kept.clone());
            return Ok(Chart { source: source.clone(), identity, kept });
        }
        Place::Web { address, sum, .. } => {
            let kept = from_web(address, sum.as_ref(), means).await;
            kept.map_err(|error| no_chart(source, error.to_string(), SERVER))?
        }
        Place::Registry(chart) => {
            let _alone = means.running.alone(&chart.blob.sum).await;
            means.fetch.fetch_chart(chart).await.map_err(|reason| no_chart(source, reason, SERVER))?;
            Kept { sum: chart.blob.sum.clone(), size: chart.blob.size }
        }
    };
    let identity = identity_of(means.fetch.blobs, &kept.sum).await?;
    let refuse = |reason: String| no_chart(source, reason, "ask its publisher");
    let identity = identity.map_err(refuse)?;
    let version = match source {
        ChartSource::Repository { version, .. } | ChartSource::Oci { version, .. } => version,
        ChartSource::Path(_) => &identity.version,
    };
    let name = match source {
        ChartSource::Repository { name, .. } => name.as_str(),
        ChartSource::Oci { image, .. } => image.path.rsplit('/').next().unwrap_or_default(),
        ChartSource::Path(_) => &identity.name,
    };
    if identity.name != name || identity.version.trim_start_matches('v') != version.trim_start_matches('v') {
        let Identity { name, version } = &identity;
        return Err(refuse(format!("the file is the chart {name} {version}")));
    }
    Ok(Chart { source: source.clone(), identity, kept })
}

async fn file(wanted: &ManifestFile, place: &Place<Kept>, means: &Means<'_>) -> Result<File, Error> {
    let kept = match place {
        Place::Here(kept) => kept.clone(),
        Place::Web { address, sum, .. } => {
            let kept = from_web(address, sum.as_ref(), means).await;
            kept.map_err(|error| no_file(&wanted.source, error.to_string(), SERVER))?
        }
        Place::Registry(_) => unreachable!("only charts are looked for in registries"),
    };
    Ok(File { file: wanted.clone(), kept })
}

/// If the checksum is known, the download resumes where an earlier attempt ended.
async fn from_web(address: &Address, sum: Option<&Sha256Sum>, means: &Means<'_>) -> Result<Kept, Error> {
    let Means { store, fetch, running } = means;
    let Some(sum) = sum else {
        let bytes = store.read(address, LARGEST, fetch.note).await?;
        (fetch.came)(bytes.len() as u64);
        let _alone = running.alone(&Sha256Sum::of_bytes(&bytes)).await;
        return local::keep(fetch.blobs, &bytes);
    };
    let _alone = running.alone(sum).await;
    if fetch.blobs.size(sum).is_none() {
        store.download(address, sum, fetch).await?;
    }
    let size = fetch.blobs.size(sum).unwrap_or_default();
    Ok(Kept { sum: sum.clone(), size })
}

/// The identity in a stored chart. The inner error states why the file is not a chart.
async fn identity_of(blobs: &Blobs, sum: &Sha256Sum) -> Result<Result<Identity, String>, Error> {
    let path = blobs.path(sum);
    blocking(move || {
        let file = std::fs::File::open(&path).map_err(Error::file("open", &path))?;
        Ok(identity(std::io::BufReader::new(file)))
    })
    .await
}
