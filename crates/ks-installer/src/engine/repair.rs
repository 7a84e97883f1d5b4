//! What the controller of plans leaves undone: it is asked for it once more, so often and no more.
//!
//! A plan that has failed stays so until its status says other values; one whose Job of helm came to no end, or ended by another
//! clock, seems to be at work for ever. `engine/uninstall.rs` is about plans that are deleted.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::extension::EXTENSION_LABEL;
use super::{Engine, Failure};
use crate::api::{self, Id, Readiness, install_plan, readiness};

/// How often something is asked for until the settings change. The pauses between are those of its component.
const MOST: u32 = 10;
/// How long helm may be at work on a release: the 10 minutes that the chart ks-core gives it (`helmExecutor.timeout`), and some for
/// another clock. What has begun longer ago, and is no Job's, is nobody's.
pub(super) const HELM_LIMIT: Duration = Duration::from_mins(12);
/// Type of the Secrets in which helm keeps releases.
const RELEASE: &str = "helm.sh/release.v1";

/// How often the controller was asked again, by plan.
#[derive(Default)]
pub(super) struct Retries(Mutex<BTreeMap<Id, u32>>);

impl Retries {
    /// Whether it may be asked once more.
    pub(super) fn take(&self, id: &Id) -> bool {
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
        // Helm would refuse it; there is a next attempt.
        if !self.forget_unfinished(live).await? || !self.retries.take(id) {
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
        let plans = plans.iter().filter(|live| install_plan::is_plan(&Id::of(live)));
        for plan in plans.filter(|plan| install_plan::is_busy(plan)) {
            let jobs = self.live_jobs(plan).await?;
            if jobs.is_empty() && !self.may_be_at_work(&self.unfinished(plan).await?) {
                return Ok(Some("no Job of helm is at work".to_owned()));
            }
            for job in jobs {
                let pods = Id::new("v1", "Pod", &namespace(plan), "");
                let pods = self.api.list(&pods, &format!("labelSelector=job-name={job}")).await;
                if let Some(text) = pods.unwrap_or_default().iter().find_map(api::stuck) {
                    return Ok(Some(text));
                }
            }
        }
        Ok(None)
    }

    /// Has the controller make up its mind anew about these plans, where helm is not at work. `false`: there is none.
    pub(super) async fn look_again(&self, plans: &[Value]) -> Result<bool, Failure> {
        let mut asked = false;
        for plan in plans.iter().filter(|live| install_plan::is_plan(&Id::of(live))) {
            let id = Id::of(plan);
            let Some(change) = install_plan::look_again(plan) else { continue };
            if !self.forget_unfinished(plan).await? || !self.retries.take(&id) {
                continue;
            }
            self.api.merge(&id, "", &change).await.map_err(Failure::at(&id))?;
            asked = true;
        }
        Ok(asked)
    }

    /// Removes helm's records of what was begun and never finished: helm refuses to change a release that has one. `false`: it may be
    /// at work, and nothing is removed.
    async fn forget_unfinished(&self, plan: &Value) -> Result<bool, Failure> {
        if !self.live_jobs(plan).await?.is_empty() {
            return Ok(false);
        }
        let unfinished = self.unfinished(plan).await?;
        if self.may_be_at_work(&unfinished) {
            return Ok(false);
        }
        for record in unfinished {
            let (id, uid) = (Id::of(&record), record["metadata"]["uid"].as_str().unwrap_or_default());
            tracing::warn!("{id} says that helm is at work, which no Job is: it is removed");
            self.api.delete(&id, uid).await.map_err(Failure::at(&id))?;
        }
        Ok(true)
    }

    /// Helm's records that say that it is at work on an extension.
    async fn unfinished(&self, plan: &Value) -> Result<Vec<Value>, Failure> {
        let mut records = self.records(plan).await?;
        let status = |record: &Value| record["metadata"]["labels"]["status"].as_str().map(str::to_owned);
        records.retain(|record| status(record).is_some_and(|status| status.starts_with("pending-")));
        Ok(records)
    }

    /// Whether one of these records is so new that somebody may be at work on it without a Job that is seen.
    fn may_be_at_work(&self, records: &[Value]) -> bool {
        let now = OffsetDateTime::now_utc();
        records.iter().any(|record| {
            let begun = record["metadata"]["creationTimestamp"].as_str().unwrap_or_default();
            OffsetDateTime::parse(begun, &Rfc3339).is_ok_and(|begun| begun + self.helm_limit > now)
        })
    }

    /// Helm's records of an extension and of its part in this cluster.
    pub(super) async fn records(&self, plan: &Value) -> Result<Vec<Value>, Failure> {
        let all = Id::new("v1", "Secret", &namespace(plan), "");
        let name = name(plan);
        let query = format!(
            "labelSelector=owner=helm,name%20in%20({name},{name}-agent)&fieldSelector=type={RELEASE}"
        );
        self.api.list(&all, &query).await.map_err(Failure::at(&all))
    }

    /// The Jobs of an extension that have not ended, also those that its plan does not name (any more). Those for other clusters run
    /// here, too.
    pub(super) async fn live_jobs(&self, plan: &Value) -> Result<Vec<String>, Failure> {
        let all = Id::new("batch/v1", "Job", &namespace(plan), "");
        let query = format!("labelSelector={EXTENSION_LABEL}={}", name(plan));
        let jobs = self.api.list(&all, &query).await.map_err(Failure::at(&all))?;
        let live = jobs.iter().filter(|job| matches!(readiness(job), Readiness::Waiting(_)));
        Ok(live.map(|job| Id::of(job).name).collect())
    }
}

/// The name of an extension.
pub(super) fn name(plan: &Value) -> &str {
    plan["spec"]["extension"]["name"].as_str().unwrap_or_default()
}

/// Where an extension is installed. While its controller says nothing: where that is unless a version says another place.
pub(super) fn namespace(plan: &Value) -> String {
    let said = plan["status"]["targetNamespace"].as_str().filter(|namespace| !namespace.is_empty());
    said.map_or_else(|| format!("extension-{}", name(plan)), str::to_owned)
}
