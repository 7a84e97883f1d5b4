//! Plans that are deleted: their controller uninstalls the extension, and needs help when that fails or hangs, or when no repository
//! publishes a version of it any more.

use std::sync::PoisonError;

use serde_json::{Value, json};

use super::repair::{name, namespace};
use super::{Engine, Failure, Reason};
use crate::api::{Id, install_plan};

impl Engine {
    /// Helps the removal of a plan that was asked for, where its controller needs help. To be called once for each attempt.
    pub(super) async fn help_removal(&self, id: &Id, plan: &Value) -> Result<(), Failure> {
        if !install_plan::is_plan(id) {
            return Ok(());
        }
        let version = plan["spec"]["extension"]["version"].as_str().unwrap_or_default();
        if self.extension_version(name(plan), version).await?.is_none() {
            return self.remove_unpublished(id, plan).await;
        }
        // Most are at work, or about to begin: that costs no look at Jobs.
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

    /// The controller needs a version that is published, whichever. Without one, the plan may go when nothing is left of the
    /// extension.
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

    /// What is, or may be, left of an extension, whatever its plan says of this cluster.
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

/// What a plan that does not go says itself, with what to do.
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
