//! Published manifests that capabilities adapt, fetched before the requirements are known: they name images.

use std::{collections::BTreeMap, sync::Arc};

use kk_artifact::Versions;
use tokio::sync::Mutex;

use super::Session;
use crate::{
    base::supply::{Documents, PublishedFile},
    model::{
        capability::{Capabilities, taking_part},
        cluster::Cluster,
    },
};

/// Manifests by file and version, for all plans of a command. A failed download is not tried again.
pub(super) type Fetched = Arc<Mutex<BTreeMap<(PublishedFile, String), Documents>>>;

impl Session {
    /// Adds the manifests of these capabilities to the cluster, and their images. The capability of a missing manifest reports it,
    /// unless the command only shows the state of the cluster.
    pub(super) async fn publish(&self, cluster: &mut Cluster<'_>, capabilities: &Capabilities) {
        let taking_part = taking_part(capabilities, cluster);
        let files: Vec<PublishedFile> =
            taking_part.iter().filter_map(|capability| capability.published(cluster.spec)).collect();
        for file in files {
            let documents = if self.settings.options.only_looks {
                self.stored_documents(file, &cluster.versions)
            } else {
                Some(self.documents(file, &cluster.versions).await)
            };
            if let Some(documents) = documents {
                cluster.published.add(file.component, documents);
            }
        }
        cluster.images.add(cluster.published.images());
    }

    /// Uses these documents as the content of a manifest, whatever its version is.
    #[cfg(test)]
    pub(crate) async fn set_published(&self, file: PublishedFile, documents: Documents) {
        let mut fetched = self.published.lock().await;
        for version in self.artifacts.versions.components().map(|(_, version)| version.to_owned()) {
            fetched.insert((file, version), documents.clone());
        }
    }

    /// `None`: the manifest is not in the store.
    fn stored_documents(&self, file: PublishedFile, versions: &Versions) -> Option<Documents> {
        let content = self.artifacts.manifest_in_store(versions, file)?;
        Some(file.read(&versions.of(file.component), &content.0))
    }

    async fn documents(&self, file: PublishedFile, versions: &Versions) -> Documents {
        let version = versions.of(file.component);
        let mut fetched = self.published.lock().await;
        let key = (file, version);
        if let Some(documents) = fetched.get(&key) {
            return documents.clone();
        }
        let content = self.artifacts.manifest(versions, file, &self.spec.registry).await;
        let documents = match content {
            Ok(content) => file.read(&key.1, &content.0),
            Err(error) => Err(file.missing(&key.1, &error)),
        };
        fetched.insert(key, documents.clone());
        documents
    }
}
