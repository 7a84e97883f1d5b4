//! Handles objects of `KubeFed`, which represent objects in other clusters: <https://github.com/kubernetes-retired/kubefed>,
//! `docs/userguide.md`.

use serde_json::json;

use super::{Engine, Failure};
use crate::api::{ApiError, Id};

/// API group of the kinds whose objects each represent an object in several clusters.
const FEDERATED: &str = "types.kubefed.io";
/// API group of `KubeFed`'s own settings. Without a setting, it does not handle the other kinds and their finalizers.
const SETTINGS: &str = "core.kubefed.io";
/// Annotation that keeps the represented objects when their federated object is deleted.
const ORPHAN: &str = "kubefed.io/orphan";

impl Engine {
    /// Deletes an object of this cluster and keeps the objects that it represents, which are not part of a component.
    /// Returns whether the object is known to be gone.
    pub(super) async fn delete_here(&self, id: &Id, uid: &str) -> Result<bool, Failure> {
        if is_federated(id) {
            let change = json!({ "metadata": { "uid": uid, "annotations": { ORPHAN: "true" } } });
            match self.api.merge(id, "", &change).await {
                Err(ApiError::NoKind(_)) => return Ok(true),
                Err(error) if error.is_not_found() => return Ok(true),
                // Another object has this name.
                Err(error) if error.is_conflict() => return Ok(false),
                other => other.map_err(Failure::at(id))?,
            };
        }
        self.api.delete(id, uid).await.map_err(Failure::at(id))
    }
}

/// Whether objects of the kind represent objects in several clusters.
pub(super) fn is_federated(kind: &Id) -> bool {
    group(kind) == FEDERATED
}

/// Whether the kind is a setting of `KubeFed`.
pub(super) fn is_setting(kind: &Id) -> bool {
    group(kind) == SETTINGS
}

fn group(kind: &Id) -> &str {
    kind.api_version.split_once('/').map_or("", |(group, _)| group)
}
