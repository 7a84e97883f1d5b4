//! For who installs charts and manifests himself: their content, from where the file says or from a bundle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use kk_config::{ChartSource, ManifestFile, ManifestSource, Registry};

use super::find::{Wanted, find};
use super::{Kept, local};
use crate::oci::{Blobs, Fetch, Registries};
use crate::store::blocking;
use crate::{Error, Store};

/// A packed chart or a file with objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content(pub Arc<[u8]>);

/// The content of charts and manifests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Obtained {
    /// Packed charts.
    pub charts: BTreeMap<ChartSource, Content>,
    /// Files with objects.
    pub manifests: BTreeMap<ManifestSource, Content>,
}

/// Fetches these; what is in the store by its sum is not fetched again. Errors: all that cannot be had.
pub async fn obtain(
    charts: &BTreeSet<ChartSource>,
    manifests: &BTreeSet<ManifestSource>,
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
    let found = find(Wanted { charts, files: &files }, store, &fetch).await?;
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
        // What has its name was verified when it got it; it may have been damaged since.
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

/// A chart of the control machine: packed, if it is a directory. Nothing is written.
pub fn local_chart(source: &ChartSource, path: &str) -> Result<Content, Error> {
    Ok(Content(local::packed(source, path)?.1.into()))
}

/// A file with objects of the control machine.
pub fn local_manifest(source: &ManifestSource, path: &str) -> Result<Content, Error> {
    Ok(Content(local::bytes(source, path)?.into()))
}

/// Whether a chart lies at this path of the control machine: a file, or a directory that says that it is one.
pub fn is_local_chart(path: &str) -> bool {
    let path = Path::new(path);
    path.is_file() || path.join("Chart.yaml").is_file()
}
