//! Obtains the content of charts and manifests for callers that install them: from their source or from a bundle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use kk_config::{ChartSource, ManifestFile, ManifestSource, Registry};

use super::find::{Wanted, find};
use super::{Kept, local};
use crate::oci::{Blobs, Fetch, Registries};
use crate::store::blocking;
use crate::{Address, Error, Store};

/// A packed chart or a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content(pub Arc<[u8]>);

/// The content of charts and manifests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Obtained {
    /// Packed charts.
    pub charts: BTreeMap<ChartSource, Content>,
    /// Kubernetes manifests.
    pub manifests: BTreeMap<ManifestSource, Content>,
}

/// Fetches these charts and manifests. Content that the store has by its checksum is not fetched again. Errors: everything that
/// is unavailable.
pub async fn obtain(
    charts: &BTreeSet<ChartSource>,
    manifests: &BTreeSet<ManifestSource>,
    mirror: Option<&Address>,
    registry: &Registry,
    store: &Store,
) -> Result<Obtained, Vec<Error>> {
    let one = |error| vec![error];
    if charts.is_empty() && manifests.is_empty() {
        return Ok(Obtained::default());
    }
    let named = |source: &ManifestSource| ManifestFile { name: String::new(), source: source.clone() };
    let files: BTreeSet<ManifestFile> = manifests.iter().map(named).collect();
    let blobs = Blobs::new(store.dir());
    let _alone = blobs.lock().await.map_err(one)?;
    let registries = Registries::new(registry.clone());
    let fetch = Fetch {
        registries: &registries,
        blobs: &blobs,
        came: &|_| {},
        note: &|_| {},
        configuration: tokio::sync::Mutex::default(),
    };
    let found = find(Wanted { charts, files: &files, mirror }, store, &fetch).await?;
    let (charts, files) = found.fetch(store, &fetch).await.map_err(one)?;
    let mut obtained = Obtained::default();
    for chart in charts {
        obtained.charts.insert(chart.source, read(&blobs, &chart.kept).await.map_err(one)?);
    }
    for file in files {
        obtained.manifests.insert(file.file.source, read(&blobs, &file.kept).await.map_err(one)?);
    }
    Ok(obtained)
}

async fn read(blobs: &Blobs, kept: &Kept) -> Result<Content, Error> {
    let (blobs, sum) = (blobs.clone(), kept.sum.clone());
    blocking(move || {
        let path = blobs.path(&sum);
        let bytes = std::fs::read(&path).map_err(Error::file("read", &path))?;
        // The content was verified when it got its name; it may have been damaged since.
        let actual = crate::Sha256Sum::of_bytes(&bytes);
        if actual != sum {
            // The next run fetches it again.
            let _ = std::fs::remove_file(&path);
            return Err(Error::Damaged { path, actual });
        }
        Ok(Content(bytes.into()))
    })
    .await
}

/// A chart on the control machine; a directory is packed. No file is written.
pub fn local_chart(source: &ChartSource, path: &str) -> Result<Content, Error> {
    Ok(Content(local::packed(source, path)?.1.into()))
}

/// A manifest on the control machine.
pub fn local_manifest(source: &ManifestSource, path: &str) -> Result<Content, Error> {
    Ok(Content(local::bytes(source, path)?.into()))
}

/// Whether there is a chart at this path on the control machine: a file, or a directory with a `Chart.yaml`.
pub fn is_local_chart(path: &str) -> bool {
    let path = Path::new(path);
    path.is_file() || path.join("Chart.yaml").is_file()
}
