//! Repairs plans that their controller has given up: it makes the controller retry, a limited number of times.
//!
//! A failed plan stays failed until its status has the hash of other values. A plan whose Job of helm was interrupted, or ended
//! according to another clock, seems to be busy forever. `engine/uninstall.rs` handles deleted plans.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::extension::EXTENSION_LABEL;
use super::{Engine, Failure};
use crate::api::{self, Id, Readiness, install_plan, readiness};

/// Maximum number of retries of a plan until its settings change. The pauses between them are the pauses of its component.
const MOST: u32 = 10;
/// Maximum time for a helm operation on a release: 10 minutes, the limit that the chart ks-core sets (`helmExecutor.timeout`),
/// and a reserve for differing clocks. An older unfinished operation without a Job was abandoned.
pub(super) const HELM_LIMIT: Duration = Duration::from_mins(12);
/// Type of the Secrets in which helm stores releases.
const RELEASE: &str = "helm.sh/release.v1";

/// Number of retries by plan.
#[derive(Default)]
pub(super) struct Retries(Mutex<BTreeMap<Id, u32>>);

impl Retries {
    /// Counts a retry, and returns whether it is allowed.
    pub(super) fn take(&self, id: &Id) -> bool {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(id.clone()).or_default();
        *count += 1;
        *count <= MOST
    }

    fn are_used_up(&self, id: &Id) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).is_some_and(|count| *count > MOST)
    }

    /// Resets the count after a success.
    pub(super) fn forget(&self, id: &Id) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    pub(super) fn forget_all(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Engine {
    /// Makes the controller retry a failed object. Returns `false` if there is nothing to retry, helm may be running, or the
    /// retries are used up.
    pub(super) async fn try_again(&self, id: &Id, live: &Value) -> Result<bool, Failure> {
        let Some(change) = install_plan::is_plan(id).then(|| install_plan::try_again(live)).flatten() else {
            return Ok(false);
        };
        // A running helm operation would block the new one. A later attempt retries.
        if !self.forget_unfinished(live).await? || !self.retries.take(id) {
            return Ok(false);
        }
        self.api.merge(id, "", &change).await.map_err(Failure::at(id))?;
        Ok(true)
    }

    /// Text that is added to the failure of an object without remaining retries.
    pub(super) fn left_alone(&self, id: &Id) -> &'static str {
        if self.retries.are_used_up(id) {
            "; it was tried again ten times, and is left until its settings change"
        } else {
            ""
        }
    }

    /// Reason why one of these plans makes no progress although it reports a running helm operation.
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

    /// Makes the controller determine the state of busy plans again if no helm operation is running. Returns `false` if there is
    /// no such plan.
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

    /// Deletes helm's records of unfinished operations, because helm refuses to change a release with such a record. Returns
    /// `false` if an operation may be running, and then deletes nothing.
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

    /// Helm's records of unfinished operations on an extension.
    async fn unfinished(&self, plan: &Value) -> Result<Vec<Value>, Failure> {
        let mut records = self.records(plan).await?;
        let status = |record: &Value| record["metadata"]["labels"]["status"].as_str().map(str::to_owned);
        records.retain(|record| status(record).is_some_and(|status| status.starts_with("pending-")));
        Ok(records)
    }

    /// Whether one of these records is so new that its operation may be running without a visible Job.
    fn may_be_at_work(&self, records: &[Value]) -> bool {
        let now = OffsetDateTime::now_utc();
        records.iter().any(|record| {
            let begun = record["metadata"]["creationTimestamp"].as_str().unwrap_or_default();
            OffsetDateTime::parse(begun, &Rfc3339).is_ok_and(|begun| begun + self.helm_limit > now)
        })
    }

    /// Helm's records of an extension, and of its part in this cluster.
    pub(super) async fn records(&self, plan: &Value) -> Result<Vec<Value>, Failure> {
        let all = Id::new("v1", "Secret", &namespace(plan), "");
        let name = name(plan);
        let query = format!(
            "labelSelector=owner=helm,name%20in%20({name},{name}-agent)&fieldSelector=type={RELEASE}"
        );
        self.api.list(&all, &query).await.map_err(Failure::at(&all))
    }

    /// The Jobs of an extension that have not ended, including Jobs that the plan does not name (any more). Jobs for other
    /// clusters also run in this cluster.
    pub(super) async fn live_jobs(&self, plan: &Value) -> Result<Vec<String>, Failure> {
        let all = Id::new("batch/v1", "Job", &namespace(plan), "");
        let query = format!("labelSelector={EXTENSION_LABEL}={}", name(plan));
        let jobs = self.api.list(&all, &query).await.map_err(Failure::at(&all))?;
        let live = jobs.iter().filter(|job| matches!(readiness(job), Readiness::Waiting(_)));
        Ok(live.map(|job| Id::of(job).name).collect())
    }
}

/// Name of an extension.
pub(super) fn name(plan: &Value) -> &str {
    plan["spec"]["extension"]["name"].as_str().unwrap_or_default()
}

/// Namespace of an extension. Until its controller reports one, it is the default namespace, although a version may specify
/// another one.
pub(super) fn namespace(plan: &Value) -> String {
    let said = plan["status"]["targetNamespace"].as_str().filter(|namespace| !namespace.is_empty());
    said.map_or_else(|| format!("extension-{}", name(plan)), str::to_owned)
}
