//! Writes Events of the object, which `kubectl describe` shows.

use serde_json::{Value, json};

use super::board::now;
use crate::api::{Api, Id};
use crate::engine::Phase;

/// Writes an Event for each phase of a component. If a write fails, only this Event is missing.
pub(super) async fn write(api: &Api, id: &Id, uid: &Value, events: Vec<(String, Phase)>) {
    for (component, phase) in events {
        let (kind, reason, message) = match phase {
            Phase::Ready => ("Normal", "Installed", format!("{component} is ready")),
            Phase::Removed => ("Normal", "Removed", format!("{component} is removed")),
            Phase::Failed(failure) => ("Warning", failure.reason.as_str(), format!("{component}: {failure}")),
            _ => continue,
        };
        let event = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": { "generateName": "ks-installer.", "namespace": id.namespace },
            "involvedObject": {
                "apiVersion": id.api_version,
                "kind": id.kind,
                "namespace": id.namespace,
                "name": id.name,
                "uid": uid,
            },
            "type": kind,
            "reason": reason,
            // The API server refuses longer messages.
            "message": message.chars().take(1000).collect::<String>(),
            "source": { "component": "ks-installer" },
            "firstTimestamp": now(),
            "lastTimestamp": now(),
            "count": 1,
        });
        if let Err(error) = api.create(&event).await {
            tracing::debug!(%error, "cannot write an Event");
        }
    }
}
