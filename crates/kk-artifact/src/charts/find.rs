//! Locates all wanted charts and manifests. Local ones, and manifests without a known checksum, are stored at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt as _;
use kk_config::{ChartSource, ManifestFile, ManifestSource};

use super::repository::Index;
use super::{Identity, Kept, LARGEST, SERVER, local, no_chart, no_file};
use crate::oci::{ChartBlob, Fetch};
use crate::store::blocking;
use crate::{Address, Error, Sha256Sum, Store};

/// The repository of Cilium's chart, which kk itself installs. A mirror has it, like everything that kk itself installs.
pub const CILIUM_REPOSITORY: &str = "https://helm.cilium.io";

/// Concurrent requests; they are small.
const PARALLEL: usize = 8;

/// Wanted charts and manifests.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) charts: &'a BTreeSet<ChartSource>,
    pub(crate) files: &'a BTreeSet<ManifestFile>,
    /// The mirror of everything that kk itself installs.
    pub(crate) mirror: Option<&'a Address>,
}

/// The location of a chart or manifest.
pub(super) enum Place<K> {
    /// In the store.
    Here(K),
    /// On a server.
    Web { address: Address, sum: Option<Sha256Sum>, missing: u64 },
    /// In a registry.
    Registry(Box<ChartBlob>),
}

/// The located charts and manifests.
pub(crate) struct Found<'a> {
    pub(super) charts: Vec<(&'a ChartSource, Place<(Identity, Kept)>)>,
    pub(super) files: Vec<(&'a ManifestFile, Place<Kept>)>,
}

impl Found<'_> {
    /// Bytes to download, as far as servers report them.
    pub(crate) fn missing(&self, fetch: &Fetch<'_>) -> u64 {
        let charts = self.charts.iter().map(|(_, place)| match place {
            Place::Web { missing, .. } => *missing,
            Place::Registry(chart) if !fetch.blobs.has(&chart.blob.sum, chart.blob.size) => chart.blob.size,
            _ => 0,
        });
        let files = self.files.iter().map(|(_, place)| match place {
            Place::Web { missing, .. } => *missing,
            _ => 0,
        });
        charts.chain(files).sum()
    }
}

/// Locates all of them. Errors: everything that is unavailable.
pub(crate) async fn find<'a>(
    wanted: Wanted<'a>,
    store: &Store,
    fetch: &Fetch<'_>,
) -> Result<Found<'a>, Vec<Error>> {
    let look = Look { store, fetch, indexes: look_at_repositories(wanted, store, fetch).await };
    let charts = futures::stream::iter(wanted.charts)
        .map(async |source| Ok((source, look.chart(source).await?)))
        .buffered(PARALLEL)
        .collect::<Vec<Result<_, Error>>>();
    let files = futures::stream::iter(wanted.files)
        .map(async |file| Ok((file, look.file(&file.source).await?)))
        .buffered(PARALLEL)
        .collect::<Vec<Result<_, Error>>>();
    let (charts, files) = tokio::join!(charts, files);
    let (mut found, mut errors) = (Found { charts: Vec::new(), files: Vec::new() }, Vec::new());
    for (repo, index) in &look.indexes {
        if let Err(reason) = index {
            let of_it = |source: &&ChartSource| matches!(source, ChartSource::Repository { repo: of, .. } if of == repo);
            let names: Vec<String> =
                wanted.charts.iter().filter(of_it).map(|source| format!("chart {source}")).collect();
            let hint =
                "check that this is the URL of a helm repository, the network and HTTPS_PROXY".to_owned();
            errors.push(Error::Source { part: names.join(", "), reason: reason.clone(), hint });
        }
    }
    for one in charts {
        match one {
            Ok((_, None)) => {}
            Ok((source, Some(place))) => found.charts.push((source, place)),
            Err(error) => errors.push(error),
        }
    }
    for one in files {
        match one {
            Ok(one) => found.files.push(one),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(found) } else { Err(errors) }
}

/// The index of each repository, or the reason why it is missing. It is requested once for all charts of the repository.
type Indexes<'a> = BTreeMap<&'a str, Result<(Address, Arc<Index>), String>>;

async fn look_at_repositories<'a>(wanted: Wanted<'a>, store: &Store, fetch: &Fetch<'_>) -> Indexes<'a> {
    let repositories: BTreeSet<&'a str> = wanted
        .charts
        .iter()
        .filter_map(|source| match source {
            ChartSource::Repository { repo, .. } => Some(repo.as_str()),
            _ => None,
        })
        .collect();
    let read = async |repo: &'a str| (repo, read_index(repo, wanted.mirror, store, fetch.note).await);
    futures::stream::iter(repositories).map(read).buffer_unordered(PARALLEL).collect().await
}

/// The address of a repository, and its index. The error states why the index is missing.
async fn read_index(
    repo: &str,
    mirror: Option<&Address>,
    store: &Store,
    note: &(dyn Fn(String) + Sync),
) -> Result<(Address, Arc<Index>), String> {
    let mut address = Address::parse(repo)?;
    if let Some(mirror) = mirror.filter(|_| repo == CILIUM_REPOSITORY) {
        address = address.behind(mirror);
    }
    let text = store.read(&address.below("index.yaml")?, LARGEST, note).await;
    let text = text.map_err(|error| error.to_string())?;
    let index = blocking(move || Index::parse(&text)).await?;
    Ok((address, Arc::new(index)))
}

/// The newest version of a chart in its repository that is not a pre-release.
pub async fn newest_version(
    source: &ChartSource,
    mirror: Option<&Address>,
    store: &Store,
) -> Result<String, Error> {
    let give = "set `version` of the chart";
    let ChartSource::Repository { repo, name, .. } = source else {
        return Err(no_chart(source, "only a repository lists versions", give));
    };
    let index = read_index(repo, mirror, store, &|_| {}).await;
    let (_, index) = index.map_err(|reason| no_chart(source, reason, SERVER))?;
    index.newest(name).map(str::to_owned).map_err(|reason| no_chart(source, reason, give))
}

struct Look<'a, 'b> {
    store: &'b Store,
    fetch: &'b Fetch<'b>,
    indexes: Indexes<'a>,
}

impl Look<'_, '_> {
    /// `None`: its repository has no index. This is reported once for all of its charts.
    async fn chart(&self, source: &ChartSource) -> Result<Option<Place<(Identity, Kept)>>, Error> {
        match source {
            ChartSource::Path(path) => {
                let (source, path, blobs) = (source.clone(), path.clone(), self.fetch.blobs.clone());
                let kept = blocking(move || local::keep_chart(&source, &path, &blobs)).await?;
                Ok(Some(Place::Here(kept)))
            }
            ChartSource::Oci { image, .. } => {
                let hint = "check name and version, and spec.registry.auths for the registry";
                let found = self.fetch.find_chart(image).await;
                let found = found.map_err(|reason| no_chart(source, reason, hint))?;
                Ok(Some(Place::Registry(Box::new(found))))
            }
            ChartSource::Repository { repo, name, version } => {
                let Some(Ok((address, index))) = self.indexes.get(repo.as_str()) else { return Ok(None) };
                let hint = "correct name or version, or ask the operator of the repository";
                let (address, sum) =
                    index.find(address, name, version).map_err(|reason| no_chart(source, reason, hint))?;
                let size = self.missing(&address, sum.as_ref()).await;
                let missing = size.map_err(|error| no_chart(source, error.to_string(), SERVER))?;
                Ok(Some(Place::Web { address, sum, missing }))
            }
        }
    }

    async fn file(&self, source: &ManifestSource) -> Result<Place<Kept>, Error> {
        match source {
            ManifestSource::Path(path) => {
                let (source, path, blobs) = (source.clone(), path.clone(), self.fetch.blobs.clone());
                blocking(move || local::keep_file(&source, &path, &blobs)).await.map(Place::Here)
            }
            ManifestSource::Url { url, sha256 } => {
                let address = Address::parse(url).map_err(|reason| no_file(source, reason, SERVER))?;
                if let Some(sum) = sha256.as_ref().and_then(|sum| sum.parse().ok()) {
                    return self.web(source, address, sum).await;
                }
                let refuse = |reason: String| no_file(source, reason, SERVER);
                let bytes = self.store.read(&address, LARGEST, self.fetch.note).await;
                let bytes = bytes.map_err(|error| refuse(error.to_string()))?;
                (self.fetch.came)(bytes.len() as u64);
                local::keep(self.fetch.blobs, &bytes).map(Place::Here)
            }
            ManifestSource::Published { url, mirror, sha256 } => {
                let mut address = Address::upstream(url);
                if let Some(mirror) = mirror {
                    address = address.behind(&Address::mirror(mirror.expose())?);
                }
                let sum = sha256.parse().map_err(|reason| no_file(source, reason, SERVER))?;
                self.web(source, address, sum).await
            }
        }
    }

    /// A manifest on a server that must have this checksum.
    async fn web(
        &self,
        source: &ManifestSource,
        address: Address,
        sum: Sha256Sum,
    ) -> Result<Place<Kept>, Error> {
        let missing = self.missing(&address, Some(&sum)).await;
        let missing = missing.map_err(|error| no_file(source, error.to_string(), SERVER))?;
        Ok(Place::Web { address, sum: Some(sum), missing })
    }

    /// Bytes to download from an address. Content with the wanted checksum is in the store already.
    async fn missing(&self, address: &Address, sum: Option<&Sha256Sum>) -> Result<u64, Error> {
        match sum {
            Some(sum) if self.fetch.blobs.size(sum).is_some() => Ok(0),
            _ => self.store.size(address).await,
        }
    }
}
