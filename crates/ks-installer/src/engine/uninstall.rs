//! Helps the controller of deleted plans to uninstall their extensions, if the uninstallation fails or hangs, or if no repository
//! publishes a version of the extension any more.

use std::sync::PoisonError;

use serde_json::{Value, json};

use super::repair::{name, namespace};
use super::{Engine, Failure, Reason};
use crate::api::{Id, install_plan};

impl Engine {
    /// Helps the controller to remove a deleted plan, if necessary. It must be called once per attempt.
    pub(super) async fn help_removal(&self, id: &Id, plan: &Value) -> Result<(), Failure> {
        if !install_plan::is_plan(id) {
            return Ok(());
        }
        let version = plan["spec"]["extension"]["version"].as_str().unwrap_or_default();
        if self.extension_version(name(plan), version).await?.is_none() {
            return self.remove_unpublished(id, plan).await;
        }
        // Most plans are busy or about to begin, so their Jobs need not be read.
        if install_plan::remove_again(plan, &[]).is_none() {
            return Ok(());
        }
        let live = self.live_jobs(plan).await?;
        let change = install_plan::remove_again(plan, &live).filter(|_| self.retries.take(id));
        if let Some(change) = change {
            self.api.merge(id, "", &change).await.map_err(Failure::at(id))?;
        }
        Ok(())
    }

    /// The controller needs a published version, no matter which. Without one, the plan may be removed when nothing of the
    /// extension is left.
    async fn remove_unpublished(&self, id: &Id, plan: &Value) -> Result<(), Failure> {
        let name = name(plan);
        if let Some(other) = self.extension_versions(name).await?.last() {
            let change = json!({ "spec": { "extension": { "version": other["spec"]["version"] } } });
            return self.api.merge(id, "", &change).await.map(drop).map_err(Failure::at(id));
        }
        if let Some(job) = self.live_jobs(plan).await?.first() {
            let text = format!("{id}: its Job {job} is at work in the namespace {}", namespace(plan));
            return Err(Failure::new(Reason::NotReady, text));
        }
        if let Some(what) = self.what_is_left(plan).await? {
            let message = format!(
                "{id}: no repository publishes the extension {name} any more, so its controller does not uninstall it; {what}\n\
                 hint: publish the extension again; or uninstall its releases with helm and remove the finalizer {} by hand",
                install_plan::FINALIZER
            );
            return Err(Failure::new(Reason::FinalizerStuck, message));
        }
        let all = plan["metadata"]["finalizers"].as_array();
        let left: Vec<&Value> =
            all.into_iter().flatten().filter(|name| *name != install_plan::FINALIZER).collect();
        let change = json!({
            "metadata": { "resourceVersion": plan["metadata"]["resourceVersion"], "finalizers": left },
        });
        tracing::warn!(
            "nothing of {id} is installed, and its controller does not see it: its finalizer is removed"
        );
        match self.api.merge(id, "", &change).await {
            Err(error) if error.is_not_found() => Ok(()),
            other => other.map(drop).map_err(Failure::at(id)),
        }
    }

    /// Parts of an extension that are, or may be, left, regardless of the status for this cluster.
    async fn what_is_left(&self, plan: &Value) -> Result<Option<String>, Failure> {
        if let Some(record) = self.records(plan).await?.first() {
            let release = record["metadata"]["labels"]["name"].as_str().unwrap_or_default();
            let text =
                format!("helm's release {release} is still there in the namespace {}", namespace(plan));
            return Ok(Some(text));
        }
        let own = self.own_cluster.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let clusters = plan["status"]["clusterSchedulingStatuses"].as_object().into_iter().flatten();
        let others: Vec<&str> = clusters.map(|(name, _)| name.as_str()).filter(|name| *name != own).collect();
        Ok((!others.is_empty()).then(|| {
            format!("its release {}-agent may be in the clusters {}", name(plan), others.join(", "))
        }))
    }
}

/// The status of a plan that is not removed, with a hint.
pub(super) fn about_removal(id: &Id, plan: &Value) -> Option<String> {
    let state = plan["status"]["state"].as_str().filter(|state| !state.is_empty());
    let said = install_plan::removal_failure(plan)
        .or_else(|| Some(state?.to_owned()))
        .unwrap_or_else(|| "its controller reports nothing".to_owned());
    install_plan::is_plan(id).then(|| {
        format!(
            "{id} was deleted and its extension is not uninstalled: {said}\nhint: see whether ks-controller-manager works, and the log \
             of its Job in the namespace {}",
            namespace(plan)
        )
    })
}
