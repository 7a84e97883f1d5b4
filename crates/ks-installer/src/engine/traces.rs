//! What controllers of a component leave when they are gone: finalizers that nobody works on any more, marks in objects of
//! others, and objects that they made in namespaces of users.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::inventory::{Entry, Inventory, Origin};
use super::wait::Pause;
use super::{Engine, Failure};
use crate::api::{self, ApiError, Id, install_plan};
use crate::payload::Trace;

/// How long pods may take to end: longer than the time that Kubernetes gives them. Those of a node that is down never end.
const ENDED: Duration = Duration::from_mins(1);
/// Finalizers that Kubernetes itself works on.
const OF_KUBERNETES: [&str; 2] = ["foregroundDeletion", "orphan"];
/// Marks of this program go with the objects that have them.
const OWN_DOMAIN: &str = "installer.kubesphere.io";

/// Namespace and labels of the pods of a workload.
pub(super) struct Pods(Id, String);

impl Engine {
    /// The pods of workloads that are about to be deleted.
    pub(super) async fn pods_of(&self, entries: &[Entry]) -> Result<Vec<Pods>, Failure> {
        let mut all = Vec::new();
        for entry in entries.iter().filter(|entry| entry.origin == Origin::Created && runs(&entry.id)) {
            let id = &entry.id;
            let live = self.api.get(id).await.map_err(Failure::at(id))?;
            if let Some(query) = live.as_ref().and_then(api::pods_query) {
                all.push(Pods(Id::new("v1", "Pod", &id.namespace, ""), query));
            }
        }
        Ok(all)
    }

    /// Waits until pods have ended: until then they make again what is taken away.
    pub(super) async fn wait_ended(&self, pods: &[Pods]) -> Result<(), Failure> {
        let until = Instant::now() + ENDED;
        for Pods(kind, query) in pods {
            let mut pause = Pause::begin();
            loop {
                let left = self.api.list(kind, query).await.map_err(Failure::at(kind))?;
                let runs = |pod: &&Value| {
                    pod["status"]["phase"] != "Succeeded" && pod["status"]["phase"] != "Failed"
                };
                let Some(pod) = left.iter().find(runs) else { break };
                if Instant::now() >= until {
                    tracing::warn!("{} does not end: it is not waited for any more", Id::of(pod));
                    break;
                }
                pause.sleep().await;
            }
        }
        Ok(())
    }

    /// Whether a component had controllers, and none of them is left.
    pub(super) async fn is_unattended(&self, inventory: &Inventory) -> Result<bool, Failure> {
        let mut had = false;
        for entry in inventory.objects.iter().filter(|entry| runs(&entry.id)) {
            had = true;
            if self.api.get(&entry.id).await.map_err(Failure::at(&entry.id))?.is_some() {
                return Ok(false);
            }
        }
        Ok(had)
    }

    /// Takes the finalizers from an object that is deleted and whose controller is gone.
    pub(super) async fn release(&self, id: &Id, uid: &str) -> Result<(), Failure> {
        // A plan stands for an extension that is installed: it is uninstalled, or its finalizer is named.
        if install_plan::is_plan(id) {
            return Ok(());
        }
        let Some(live) = self.api.get(id).await.map_err(Failure::at(id))? else { return Ok(()) };
        if live["metadata"]["uid"] != uid {
            return Ok(());
        }
        let Some(change) = without_finalizers(&live, |name| !OF_KUBERNETES.contains(&name)) else {
            return Ok(());
        };
        tracing::warn!("the controller of {id} is gone: its finalizers are removed");
        self.change(id, &change).await
    }

    /// Removes what the controllers have left in objects of others, and what they made there.
    pub(super) async fn remove_traces(&self, traces: &[Trace]) -> Result<(), Failure> {
        for trace in traces {
            let kind = Id::new(&trace.api_version, &trace.kind, "", "");
            for object in self.api.list(&kind, "").await.map_err(Failure::at(&kind))? {
                let (id, metadata) = (Id::of(&object), &object["metadata"]);
                let has =
                    |key: &String| ["labels", "annotations"].iter().any(|map| !metadata[map][key].is_null());
                if trace.deleted_with.iter().any(has) {
                    let uid = metadata["uid"].as_str().unwrap_or_default();
                    self.api.delete(&id, uid).await.map_err(Failure::at(&id))?;
                } else if let Some(change) =
                    trace.domain.as_deref().and_then(|domain| without_marks(&object, domain))
                {
                    self.change(&id, &change).await?;
                }
            }
        }
        Ok(())
    }

    /// Changes an object that may have gone, or may have been changed, meanwhile.
    async fn change(&self, id: &Id, change: &Value) -> Result<(), Failure> {
        match self.api.merge(id, "", change).await {
            Err(ApiError::NoKind(_)) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            other => other.map(drop).map_err(Failure::at(id)),
        }
    }
}

/// Whether pods of it are controllers.
fn runs(id: &Id) -> bool {
    id.api_version == "apps/v1" && ["Deployment", "StatefulSet", "DaemonSet"].contains(&id.kind.as_str())
}

/// The change that takes these finalizers from an object, if it has one.
fn without_finalizers(object: &Value, goes: impl Fn(&str) -> bool) -> Option<Value> {
    let metadata = &object["metadata"];
    let all: Vec<&Value> = metadata["finalizers"].as_array().into_iter().flatten().collect();
    let stays = |name: &&&Value| !name.as_str().is_some_and(&goes);
    let left: Vec<&Value> = all.iter().filter(stays).copied().collect();
    // Somebody may have added another one.
    let version = &metadata["resourceVersion"];
    (left.len() < all.len())
        .then(|| json!({ "metadata": { "resourceVersion": version, "finalizers": left } }))
}

/// The change that takes everything of a domain from the metadata of an object, if there is any.
fn without_marks(object: &Value, domain: &str) -> Option<Value> {
    let metadata = &object["metadata"];
    let mut change = without_finalizers(object, |name| is_of(name, domain)).unwrap_or_default();
    for map in ["labels", "annotations"] {
        let keys = metadata[map].as_object().into_iter().flat_map(Map::keys);
        for key in keys.filter(|key| is_of(key, domain)) {
            change["metadata"][map][key] = Value::Null;
        }
    }
    change.is_object().then_some(change)
}

/// Whether a name like `a.example.com/b` is of the domain `example.com`.
fn is_of(name: &str, domain: &str) -> bool {
    let prefix = name.split_once('/').map_or("", |(prefix, _)| prefix);
    let is_below = prefix.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    is_below && prefix != OWN_DOMAIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marks_of_the_domain_are_taken() {
        for (case, metadata, expected) in [
            ("none", json!({"labels": {"a": "b"}, "finalizers": ["example.com/x"]}), None),
            ("own", json!({"labels": {"installer.kubesphere.io/component": "namespaces"}}), None),
            ("like", json!({"labels": {"notkubesphere.io/a": "b", "kubesphere.io": "c"}}), None),
            (
                "label",
                json!({"labels": {"kubesphere.io/workspace": "w", "a": "b"}}),
                Some(json!({"labels": {"kubesphere.io/workspace": null}})),
            ),
            (
                "annotation",
                json!({"annotations": {"iam.kubesphere.io/x": "y"}}),
                Some(json!({"annotations": {"iam.kubesphere.io/x": null}})),
            ),
            (
                "finalizer",
                json!({"resourceVersion": "7", "finalizers": ["finalizers.kubesphere.io/namespaces", "example.com/x"]}),
                Some(json!({"resourceVersion": "7", "finalizers": ["example.com/x"]})),
            ),
        ] {
            let change = without_marks(&json!({ "metadata": metadata }), "kubesphere.io");
            assert_eq!(change, expected.map(|metadata| json!({ "metadata": metadata })), "{case}");
        }
    }
}
