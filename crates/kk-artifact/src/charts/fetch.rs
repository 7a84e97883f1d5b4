//! Fetches what was found and is not here.

use futures::StreamExt as _;
use kk_config::{ChartSource, ManifestFile};

use super::find::{Found, Place};
use super::{Identity, Kept, LARGEST, SERVER, identity, local, no_chart, no_file};
use crate::oci::{Blobs, Fetch};
use crate::store::blocking;
use crate::{Address, Error, Sha256Sum, Store};

/// Files at once.
const PARALLEL: usize = 4;

/// A chart that is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chart {
    pub(crate) source: ChartSource,
    pub(crate) identity: Identity,
    pub(crate) kept: Kept,
}

/// A file with objects that is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) file: ManifestFile,
    pub(crate) kept: Kept,
}

impl Found<'_> {
    /// All of it.
    pub(crate) async fn fetch(
        &self,
        store: &Store,
        fetch: &Fetch<'_>,
    ) -> Result<(Vec<Chart>, Vec<File>), Error> {
        let charts = futures::stream::iter(&self.charts)
            .map(|(source, place)| chart(source, place, store, fetch))
            .buffered(PARALLEL)
            .collect::<Vec<_>>();
        let files = futures::stream::iter(&self.files)
            .map(|(wanted, place)| file(wanted, place, store, fetch))
            .buffered(PARALLEL)
            .collect::<Vec<_>>();
        let (charts, files) = tokio::join!(charts, files);
        Ok((charts.into_iter().collect::<Result<_, _>>()?, files.into_iter().collect::<Result<_, _>>()?))
    }
}

async fn chart(
    source: &ChartSource,
    place: &Place<(Identity, Kept)>,
    store: &Store,
    fetch: &Fetch<'_>,
) -> Result<Chart, Error> {
    let kept = match place {
        Place::Here((identity, kept)) => {
            let (identity, kept) = (identity.clone(), kept.clone());
            return Ok(Chart { source: source.clone(), identity, kept });
        }
        Place::Web { address, sum, .. } => {
            let kept = from_web(address, sum.as_ref(), store, fetch).await;
            kept.map_err(|error| no_chart(source, error.to_string(), SERVER))?
        }
        Place::Registry(chart) => {
            fetch.fetch_chart(chart).await.map_err(|reason| no_chart(source, reason, SERVER))?;
            Kept { sum: chart.blob.sum.clone(), size: chart.blob.size }
        }
    };
    let identity = identity_of(fetch.blobs, &kept.sum).await?;
    let refuse = |reason: String| no_chart(source, reason, "ask who has published it");
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
        return Err(refuse(format!("what is there is the chart {name} {version}")));
    }
    Ok(Chart { source: source.clone(), identity, kept })
}

async fn file(
    wanted: &ManifestFile,
    place: &Place<Kept>,
    store: &Store,
    fetch: &Fetch<'_>,
) -> Result<File, Error> {
    let kept = match place {
        Place::Here(kept) => kept.clone(),
        Place::Web { address, sum, .. } => {
            let kept = from_web(address, sum.as_ref(), store, fetch).await;
            kept.map_err(|error| no_file(&wanted.source, error.to_string(), SERVER))?
        }
        Place::Registry(_) => unreachable!("only charts are looked for in registries"),
    };
    Ok(File { file: wanted.clone(), kept })
}

/// With a sum it goes on where an earlier try has ended.
async fn from_web(
    address: &Address,
    sum: Option<&Sha256Sum>,
    store: &Store,
    fetch: &Fetch<'_>,
) -> Result<Kept, Error> {
    let Some(sum) = sum else {
        let bytes = store.read(address, LARGEST, fetch.note).await?;
        (fetch.came)(bytes.len() as u64);
        return local::keep(fetch.blobs, &bytes);
    };
    if fetch.blobs.size(sum).is_none() {
        store.download(address, sum, fetch).await?;
    }
    let size = fetch.blobs.size(sum).unwrap_or_default();
    Ok(Kept { sum: sum.clone(), size })
}

/// What a chart that is here calls itself. The inner error says why it is none.
pub(super) async fn identity_of(blobs: &Blobs, sum: &Sha256Sum) -> Result<Result<Identity, String>, Error> {
    let path = blobs.path(sum);
    blocking(move || {
        let file = std::fs::File::open(&path).map_err(Error::file("open", &path))?;
        Ok(identity(std::io::BufReader::new(file)))
    })
    .await
}
