//! Objects of `KubeFed`, which stand for objects in other clusters: <https://github.com/kubernetes-retired/kubefed>, `docs/userguide.md`.

use serde_json::json;

use super::{Engine, Failure};
use crate::api::{ApiError, Id};

/// Kinds whose objects each stand for one in several clusters.
const FEDERATED: &str = "types.kubefed.io";
/// Kinds that `KubeFed` itself is set up by. Without them it works for none of the others, their finalizers included.
const SETTINGS: &str = "core.kubefed.io";
/// Says that the objects in the clusters stay when the one that stands for them is deleted.
const ORPHAN: &str = "kubefed.io/orphan";

impl Engine {
    /// Deletes an object of this cluster, and nothing in others: what runs there is not part of a component. Returns whether it is
    /// known to be gone.
    pub(super) async fn delete_here(&self, id: &Id, uid: &str) -> Result<bool, Failure> {
        if is_federated(id) {
            let change = json!({ "metadata": { "uid": uid, "annotations": { ORPHAN: "true" } } });
            match self.api.merge(id, "", &change).await {
                Err(ApiError::NoKind(_)) => return Ok(true),
                Err(error) if error.is_not_found() => return Ok(true),
                // Another one with this name.
                Err(error) if error.is_conflict() => return Ok(false),
                other => other.map_err(Failure::at(id))?,
            };
        }
        self.api.delete(id, uid).await.map_err(Failure::at(id))
    }
}

/// Whether it stands for objects in several clusters.
pub(super) fn is_federated(kind: &Id) -> bool {
    group(kind) == FEDERATED
}

/// Whether `KubeFed` is set up by it.
pub(super) fn is_setting(kind: &Id) -> bool {
    group(kind) == SETTINGS
}

fn group(kind: &Id) -> &str {
    kind.api_version.split_once('/').map_or("", |(group, _)| group)
}
