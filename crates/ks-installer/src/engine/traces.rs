//! Removes traces of deleted controllers: finalizers that no controller handles, marks in objects of other owners, and objects
//! that the controllers created in namespaces of users.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::inventory::{Entry, Inventory};
use super::pass::Progress;
use super::wait::Pause;
use super::{Engine, Failure, Reason};
use crate::api::{self, ApiError, Id, install_plan};
use crate::payload::Trace;

/// Finalizers that Kubernetes itself handles.
const OF_KUBERNETES: [&str; 2] = ["foregroundDeletion", "orphan"];
/// Marks of ks-installer disappear with their objects.
const OWN_DOMAIN: &str = "installer.kubesphere.io";

impl Engine {
    /// Whether a component had controllers, and none of their workloads is left. Their pods may still run.
    pub(super) async fn is_unattended(&self, inventory: &Inventory) -> Result<bool, Failure> {
        let workloads = workloads(&inventory.objects);
        for id in &workloads {
            if self.api.get(id).await.map_err(Failure::at(id))?.is_some() {
                return Ok(false);
            }
        }
        Ok(!workloads.is_empty())
    }

    /// Waits until the pods of deleted workloads have ended. It fails if a pod does not end. In that case, nothing may be removed
    /// that this pod may add again.
    pub(super) async fn wait_ended(
        &self,
        inventory: &Inventory,
        progress: &Progress<'_>,
    ) -> Result<(), Failure> {
        let (workloads, begun) = (workloads(&inventory.objects), OffsetDateTime::now_utc());
        let mut pause = Pause::begin();
        loop {
            let left = self.running_pods(&workloads).await?;
            let Some(pod) = left.first() else { return Ok(()) };
            let is_late = |pod: &&Value| OffsetDateTime::now_utc() >= time_to_end(pod, begun) + self.patience;
            if let Some(late) = left.iter().find(is_late) {
                return Err(does_not_end(late));
            }
            progress.waits(&format!("{} has not ended", Id::of(pod)));
            pause.sleep().await;
        }
    }

    async fn running_pods(&self, workloads: &[&Id]) -> Result<Vec<Value>, Failure> {
        let namespaces: BTreeSet<&str> = workloads.iter().map(|id| id.namespace.as_str()).collect();
        let runs = |pod: &Value| {
            !api::has_ended(pod) && workloads.iter().any(|workload| api::is_pod_of(pod, workload))
        };
        let mut running = Vec::new();
        for namespace in namespaces {
            let kind = Id::new("v1", "Pod", namespace, "");
            running.extend(self.api.list_where(&kind, runs).await.map_err(Failure::at(&kind))?);
        }
        Ok(running)
    }

    /// The deleted workloads among these objects whose pods still run.
    pub(super) async fn outlived(&self, entries: &[Entry]) -> Result<Vec<Id>, Failure> {
        let mut gone = Vec::new();
        for id in workloads(entries) {
            if self.api.get(id).await.map_err(Failure::at(id))?.is_none() {
                gone.push(id);
            }
        }
        let pods = self.running_pods(&gone).await?;
        gone.retain(|id| pods.iter().any(|pod| api::is_pod_of(pod, id)));
        Ok(gone.into_iter().cloned().collect())
    }

    /// Removes the finalizers of a deleted object without a controller. `ended` is the result of the wait for the pods of the
    /// controller.
    pub(super) async fn release(
        &self,
        id: &Id,
        uid: &str,
        ended: &Result<(), Failure>,
    ) -> Result<(), Failure> {
        // The finalizer of a plan protects an installed extension. Either the extension is uninstalled, or the failure names the
        // finalizer.
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
        ended.clone()?;
        tracing::warn!("the controller of {id} is gone: its finalizers are removed");
        self.change(id, &change).await
    }

    /// Removes the marks of the controllers from objects of other owners, and deletes the objects that the controllers created
    /// there. `ended` is the result of the wait for their pods.
    pub(super) async fn remove_traces(
        &self,
        traces: &[Trace],
        ended: &Result<(), Failure>,
    ) -> Result<(), Failure> {
        for trace in traces {
            let kind = Id::new(&trace.api_version, &trace.kind, "", "");
            for object in self.api.list(&kind, "").await.map_err(Failure::at(&kind))? {
                let (id, metadata) = (Id::of(&object), &object["metadata"]);
                let has =
                    |key: &String| ["labels", "annotations"].iter().any(|map| !metadata[map][key].is_null());
                if trace.deleted_with.iter().any(has) {
                    ended.clone()?;
                    let uid = metadata["uid"].as_str().unwrap_or_default();
                    self.api.delete(&id, uid).await.map_err(Failure::at(&id))?;
                } else if let Some(change) =
                    trace.domain.as_deref().and_then(|domain| without_marks(&object, domain))
                {
                    ended.clone()?;
                    self.change(&id, &change).await?;
                }
            }
        }
        Ok(())
    }

    /// Changes an object that may have been deleted meanwhile.
    async fn change(&self, id: &Id, change: &Value) -> Result<(), Failure> {
        match self.api.merge(id, "", change).await {
            Err(ApiError::NoKind(_)) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            other => other.map(drop).map_err(Failure::at(id)),
        }
    }
}

/// Time until which a pod may run. `deletionTimestamp` includes its grace period, and is missing until the garbage collector
/// deletes the pod.
fn time_to_end(pod: &Value, begun: OffsetDateTime) -> OffsetDateTime {
    let deleted = pod["metadata"]["deletionTimestamp"].as_str().unwrap_or_default();
    OffsetDateTime::parse(deleted, &Rfc3339).map_or(begun, |deleted| deleted.max(begun))
}

fn does_not_end(pod: &Value) -> Failure {
    let id = Id::of(pod);
    let node =
        pod["spec"]["nodeName"].as_str().map_or_else(String::new, |node| format!(" on the node {node}"));
    let message = format!(
        "{id}{node} has not ended, although its workload was deleted: finalizers stay, because the pod may add them again\n\
         hint: see why with `kubectl -n {} describe pod {}`; if its node is lost for good, delete the pod with `--force --grace-period=0`",
        id.namespace, id.name
    );
    Failure::new(Reason::FinalizerStuck, message)
}

/// The workloads whose pods may be controllers.
fn workloads(entries: &[Entry]) -> Vec<&Id> {
    let runs = |id: &&Id| {
        id.api_version == "apps/v1" && ["Deployment", "StatefulSet", "DaemonSet"].contains(&id.kind.as_str())
    };
    entries.iter().map(|entry| &entry.id).filter(runs).collect()
}

/// The change that removes these finalizers from an object, or `None` if it has none of them.
fn without_finalizers(object: &Value, goes: impl Fn(&str) -> bool) -> Option<Value> {
    let metadata = &object["metadata"];
    let all: Vec<&Value> = metadata["finalizers"].as_array().into_iter().flatten().collect();
    let stays = |name: &&&Value| !name.as_str().is_some_and(&goes);
    let left: Vec<&Value> = all.iter().filter(stays).copied().collect();
    // Another controller may have added a finalizer meanwhile.
    let version = &metadata["resourceVersion"];
    (left.len() < all.len())
        .then(|| json!({ "metadata": { "resourceVersion": version, "finalizers": left } }))
}

/// The change that removes all marks of a domain from the metadata of an object, or `None` without such marks.
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

/// Whether a name such as `a.example.com/b` belongs to the domain `example.com`.
fn is_of(name: &str, domain: &str) -> bool {
    let prefix = name.split_once('/').map_or("", |(prefix, _)| prefix);
    let is_below = prefix.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    is_below && prefix != OWN_DOMAIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_may_run_until_its_grace_period_ends() {
        let time = |text: &str| OffsetDateTime::parse(text, &Rfc3339).unwrap();
        let begun = time("2026-01-01T12:00:00Z");
        for (case, deleted, expected) in [
            ("not_yet_deleted", Value::Null, begun),
            ("long_grace_period", json!("2026-01-01T13:00:00Z"), time("2026-01-01T13:00:00Z")),
            ("overdue", json!("2026-01-01T11:00:00Z"), begun),
            ("no_time", json!("soon"), begun),
        ] {
            let pod = json!({"metadata": {"deletionTimestamp": deleted}});
            assert_eq!(time_to_end(&pod, begun), expected, "{case}");
        }
    }

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
