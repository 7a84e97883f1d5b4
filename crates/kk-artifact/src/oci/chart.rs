//! Helm charts in registries: an artifact whose layer is the packed chart (helm's documentation, "Use OCI-based registries").

use kk_config::ImageName;

use super::document::{self, Blob};
use super::fetch::Fetch;
use super::registries::{RefusalKind, Source};

/// The layer with the packed chart.
const CONTENT: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// A chart and its source.
pub(crate) struct ChartBlob {
    name: ImageName,
    source: Source,
    pub(crate) blob: Blob,
}

impl Fetch<'_> {
    /// The first source that has a chart. Errors state why no source has it, and which versions exist instead.
    pub(crate) async fn find_chart(&self, name: &ImageName) -> Result<ChartBlob, String> {
        let mut reasons = Vec::new();
        for source in self.registries.sources(name).map_err(|error| error.to_string())? {
            match self.document(name, &source, &source.reference).await {
                Ok(bytes) => {
                    let blob = packed_chart(&bytes)?;
                    return Ok(ChartBlob { name: name.clone(), source, blob });
                }
                Err(refusal) if refusal.kind == RefusalKind::NotFound => {
                    let there = versions(&source).await;
                    reasons.push(format!("{}: {}{there}", source.host, refusal.reason));
                }
                Err(refusal) => reasons.push(format!("{}: {}", source.host, refusal.reason)),
            }
        }
        Err(reasons.join("; "))
    }

    /// Fetches the packed chart, unless it is in the store.
    pub(crate) async fn fetch_chart(&self, chart: &ChartBlob) -> Result<(), String> {
        if self.blobs.has(&chart.blob.sum, chart.blob.size) {
            return Ok(());
        }
        let fetched = self.blob(&chart.name, &chart.source, &chart.blob).await;
        fetched.map_err(|error| match error {
            crate::Error::Image { reason, .. } => reason,
            other => other.to_string(),
        })
    }
}

fn packed_chart(manifest: &[u8]) -> Result<Blob, String> {
    let manifest = document::manifest(manifest).map_err(|_| NO_CHART.to_owned())?;
    let layer = manifest.layers().iter().find(|layer| layer.media_type().to_string() == CONTENT);
    document::blob(layer.ok_or(NO_CHART)?)
}

const NO_CHART: &str = "it is not a chart";

/// The versions that a registry has, as text. Empty if the registry does not list them.
async fn versions(source: &Source) -> String {
    let tags = source.client.tags(&source.reference).await.unwrap_or_default();
    let versions: Vec<String> = tags.iter().map(|tag| tag.replace('_', "+")).collect();
    crate::version_list::it_has(&versions.iter().map(String::as_str).collect::<Vec<_>>())
}
