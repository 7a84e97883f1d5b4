//! What the controller of plans leaves undone: it is asked for it once more, so often and no more.
//!
//! A plan that has failed stays so until its status says other values; one whose Job of helm came to no end, or ended by another
//! clock, seems to be at work for ever; one whose version is not published any more is not uninstalled.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::{Engine, Failure, Reason};
use crate::api::{self, Id, Readiness, install_plan, readiness};

/// How often something is asked for until the settings change. The pauses between are those of its component.
const MOST: u32 = 10;
/// Type of the Secrets in which helm keeps releases.
const RELEASE: &str = "helm.sh/release.v1";

/// How often the controller was asked again, by plan.
#[derive(Default)]
pub(super) struct Retries(Mutex<BTreeMap<Id, u32>>);

impl Retries {
    /// Whether it may be asked once more.
    fn take(&self, id: &Id) -> bool {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(id.clone()).or_default();
        *count += 1;
        *count <= MOST
    }

    fn are_used_up(&self, id: &Id) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).is_some_and(|count| *count > MOST)
    }

    /// What it was asked for is done.
    pub(super) fn forget(&self, id: &Id) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    pub(super) fn forget_all(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Engine {
    /// Has an object that failed tried again by its controller. `false`: that is nothing to ask for, or was asked for too often.
    pub(super) async fn try_again(&self, id: &Id, live: &Value) -> Result<bool, Failure> {
        let Some(change) = install_plan::is_plan(id).then(|| install_plan::try_again(live)).flatten() else {
            return Ok(false);
        };
        if !self.retries.take(id) {
            return Ok(false);
        }
        self.api.merge(id, "", &change).await.map_err(Failure::at(id))?;
        Ok(true)
    }

    /// What is added to a failure of an object that is left alone.
    pub(super) fn left_alone(&self, id: &Id) -> &'static str {
        if self.retries.are_used_up(id) {
            "; it was tried again ten times, and is left until its settings change"
        } else {
            ""
        }
    }

    /// Why nothing goes on with one of these plans, though it says that helm is at work.
    pub(super) async fn idle_plan(&self, plans: &[Value]) -> Result<Option<String>, Failure> {
        for plan in plans.iter().filter(|live| install_plan::is_plan(&Id::of(live))) {
            for job in install_plan::busy(plan) {
                if !self.is_at_work(plan, &job).await? {
                    return Ok(Some("no Job of helm is at work".to_owned()));
                }
                let pods = Id::new("v1", "Pod", namespace(plan), "");
                let pods = self.api.list(&pods, &format!("labelSelector=job-name={job}")).await;
                if let Some(text) = pods.unwrap_or_default().iter().find_map(api::stuck) {
                    return Ok(Some(text));
                }
            }
        }
        Ok(None)
    }

    /// Has the controller make up its mind anew about these plans, where no Job of helm is at work. `false`: there is none.
    pub(super) async fn look_again(&self, plans: &[Value]) -> Result<bool, Failure> {
        let mut asked = false;
        for plan in plans.iter().filter(|live| install_plan::is_plan(&Id::of(live))) {
            let id = Id::of(plan);
            let mut at_work = false;
            for job in install_plan::busy(plan) {
                at_work = at_work || self.is_at_work(plan, &job).await?;
            }
            let Some(change) = install_plan::look_again(plan).filter(|_| !at_work) else { continue };
            if !self.retries.take(&id) {
                continue;
            }
            self.forget_unfinished(plan).await?;
            self.api.merge(&id, "", &change).await.map_err(Failure::at(&id))?;
            asked = true;
        }
        Ok(asked)
    }

    /// Helm refuses to touch a release that it takes to be at work on. Nobody is: the Job that was has ended.
    async fn forget_unfinished(&self, plan: &Value) -> Result<(), Failure> {
        let name = plan["spec"]["extension"]["name"].as_str().unwrap_or_default();
        for release in [name.to_owned(), format!("{name}-agent")] {
            for record in self.records(plan, &release).await? {
                let status = record["metadata"]["labels"]["status"].as_str().unwrap_or_default();
                if status.starts_with("pending-") {
                    let (id, uid) = (Id::of(&record), record["metadata"]["uid"].as_str().unwrap_or_default());
                    tracing::warn!("{id} says {status}, and no Job is at work: it is removed");
                    self.api.delete(&id, uid).await.map_err(Failure::at(&id))?;
                }
            }
        }
        Ok(())
    }

    /// Helps the removal of a plan that was asked for, where its controller needs help. To be called once for each attempt.
    pub(super) async fn help_removal(&self, id: &Id, plan: &Value) -> Result<(), Failure> {
        if !install_plan::is_plan(id) {
            return Ok(());
        }
        let extension = &plan["spec"]["extension"];
        let [name, version] = ["name", "version"].map(|key| extension[key].as_str().unwrap_or_default());
        if self.extension_version(name, version).await?.is_none() {
            return self.remove_unpublished(id, plan).await;
        }
        let mut failed = install_plan::removal_failure(plan).is_some();
        if plan["status"]["state"] == "Uninstalling" {
            for job in install_plan::busy(plan) {
                failed = failed || !self.is_at_work(plan, &job).await?;
            }
        }
        if failed && self.retries.take(id) {
            let change = install_plan::remove_again(plan);
            self.api.merge(id, "", &change).await.map_err(Failure::at(id))?;
        }
        Ok(())
    }

    /// The controller needs a version that is published, whichever. Without one, the plan may go when nothing is left of the
    /// extension.
    async fn remove_unpublished(&self, id: &Id, plan: &Value) -> Result<(), Failure> {
        let name = plan["spec"]["extension"]["name"].as_str().unwrap_or_default();
        if let Some(other) = self.extension_versions(name).await?.last() {
            let change = json!({ "spec": { "extension": { "version": other["spec"]["version"] } } });
            return self.api.merge(id, "", &change).await.map(drop).map_err(Failure::at(id));
        }
        let clusters = plan["status"]["clusterSchedulingStatuses"].as_object().into_iter().flatten();
        let clusters: Vec<&str> = clusters.map(|(cluster, _)| cluster.as_str()).collect();
        let release = plan["status"]["releaseName"].as_str().unwrap_or_default();
        let is_there = !release.is_empty() && !self.records(plan, release).await?.is_empty();
        if is_there || !clusters.is_empty() {
            let place = if is_there { namespace(plan).to_owned() } else { clusters.join(", ") };
            let message = format!(
                "{id}: no repository publishes the extension {name} any more, so its controller does not uninstall it; helm's \
                 release is still there in {place}\nhint: publish the extension again; or uninstall the release with helm and \
                 remove the finalizer {} by hand",
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

    /// Helm's records of a release of a plan.
    async fn records(&self, plan: &Value, release: &str) -> Result<Vec<Value>, Failure> {
        let all = Id::new("v1", "Secret", namespace(plan), "");
        if all.namespace.is_empty() {
            return Ok(Vec::new());
        }
        let query = format!("labelSelector=owner=helm,name={release}&fieldSelector=type={RELEASE}");
        self.api.list(&all, &query).await.map_err(Failure::at(&all))
    }

    /// Whether a Job of a plan has not ended.
    async fn is_at_work(&self, plan: &Value, job: &str) -> Result<bool, Failure> {
        if job.is_empty() {
            return Ok(false);
        }
        let id = Id::new("batch/v1", "Job", namespace(plan), job);
        let found = self.api.get(&id).await.map_err(Failure::at(&id))?;
        Ok(found.is_some_and(|job| matches!(readiness(&job), Readiness::Waiting(_))))
    }
}

/// Where an extension is installed.
fn namespace(plan: &Value) -> &str {
    plan["status"]["targetNamespace"].as_str().unwrap_or_default()
}

/// What a plan that does not go says itself, with what to do.
pub(super) fn about_removal(id: &Id, plan: &Value) -> Option<String> {
    let state = plan["status"]["state"].as_str().filter(|state| !state.is_empty());
    let said = install_plan::removal_failure(plan)
        .or_else(|| Some(state?.to_owned()))
        .unwrap_or_else(|| "its controller says nothing".to_owned());
    install_plan::is_plan(id).then(|| {
        format!(
            "{id} was deleted and its extension is not uninstalled: {said}\nhint: see whether ks-controller-manager works, and the log \
             of its Job in the namespace {}; `kubectl annotate installplan {} {}=true` forgets the extension and leaves its objects",
            namespace(plan),
            id.name,
            install_plan::FORCE_DELETE
        )
    })
}
