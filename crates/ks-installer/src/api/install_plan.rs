//! Interprets the `InstallPlan` of KubeSphere 4: what ks-controller-manager reports in it, and changes that make it retry.
//!
//! Behaviour of the controller (version 4.1.3, `pkg/controller/core`):
//! - It begins an installation or an upgrade if the status has no hash of the values, another hash, or another version. Otherwise
//!   it never retries a failed one.
//! - It records the state of Jobs and helm releases only if that state is not older than the last entry of `stateHistory`.
//! - It uninstalls the part in a cluster that the plan no longer names, and all parts of a deleted plan, unless the state of the
//!   part says that this is in progress or has failed.
//! - `status` is not a subresource.

use serde_json::{Map, Value, json};
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

use super::{Id, Readiness};

/// API version of a plan.
pub const API_VERSION: &str = "kubesphere.io/v1alpha1";
/// Kind of a plan.
pub const KIND: &str = "InstallPlan";
/// Finalizer of a plan until its extension is uninstalled.
pub const FINALIZER: &str = "kubesphere.io/installplan-protection";

/// States in which a Job of helm runs or is about to begin.
const BUSY: [&str; 4] = ["Preparing", "Installing", "Upgrading", "Uninstalling"];

/// Whether an object is a plan.
pub fn is_plan(id: &Id) -> bool {
    id.kind == KIND && id.api_version == API_VERSION
}

/// The controller's status of one release: the release of the extension, or of its part in one cluster.
struct Part<'a> {
    cluster: Option<&'a str>,
    status: &'a Value,
    /// Expected hash of the values; `None` if it cannot be computed here.
    hash: Option<String>,
    /// Whether the part is uninstalled although the plan stays, because the plan no longer names its cluster.
    leaves: bool,
}

impl Part<'_> {
    fn state(&self) -> &str {
        self.status["state"].as_str().unwrap_or_default()
    }

    fn job(&self) -> &str {
        self.status["jobName"].as_str().unwrap_or_default()
    }

    /// A change after which the controller regards a release that it failed to uninstall as installed, and uninstalls it again.
    /// Its helm release and its Job report otherwise, but both are older than the latest noted state, so one second later is
    /// enough. The local clock is not used, because it may differ from the controller's, and the controller would then start one
    /// Job after the other.
    fn restored(&self) -> Value {
        let noted = self.status["stateHistory"].as_array().into_iter().flatten();
        let noted = noted.filter_map(|entry| entry["lastTransitionTime"].as_str());
        let latest = noted.filter_map(|text| OffsetDateTime::parse(text, &Rfc3339).ok()).max();
        let time = latest.map_or_else(OffsetDateTime::now_utc, |latest| latest + Duration::SECOND);
        let time = time.replace_nanosecond(0).unwrap_or(time).format(&Rfc3339).unwrap_or_default();
        let installed = json!({ "state": "Installed", "lastTransitionTime": time });
        json!({ "state": "Installed", "stateHistory": [installed], "jobName": "" })
    }

    /// Whether the controller will act by itself, because the release differs from the plan.
    fn is_outdated(&self, version: &str) -> bool {
        let found = self.status["configHash"].as_str().unwrap_or_default();
        let installed = self.status["version"].as_str().unwrap_or_default();
        found.is_empty()
            || self.hash.as_ref().is_some_and(|hash| hash != found)
            || !installed.is_empty() && installed != version
    }

    /// The latest message of the controller, if it reports a failure.
    fn message(&self) -> String {
        let conditions = self.status["conditions"].as_array();
        let failed = conditions.into_iter().flatten().find(|one| one["status"] == "False");
        let text = failed.and_then(|one| one["message"].as_str()).filter(|text| !text.is_empty());
        text.map_or_else(String::new, |text| format!(": {text}"))
    }

    fn readiness(&self, version: &str) -> Readiness {
        let place = self.cluster.map_or_else(String::new, |cluster| format!("in the cluster {cluster}: "));
        let state = self.state();
        match state {
            _ if self.leaves && state != "UninstallFailed" => {
                Readiness::Waiting(format!("{place}{state}; it is to be uninstalled"))
            }
            "Installed" | "Upgraded" if !self.is_outdated(version) => Readiness::Ready,
            "Installed" | "Upgraded" => {
                Readiness::Waiting(format!("{place}its controller has not seen the change"))
            }
            "" => Readiness::Waiting(format!("{place}its controller has not begun")),
            "InstallFailed" | "UpgradeFailed" | "UninstallFailed" => {
                let text = format!("{place}{state}{}", self.message());
                // The failure concerns values or a version that are no longer wanted, or the controller retries by itself.
                if state != "UninstallFailed" && self.is_outdated(version) {
                    Readiness::Waiting(text)
                } else {
                    Readiness::Failed(text)
                }
            }
            _ => Readiness::Waiting(format!("{place}{state}")),
        }
    }
}

/// The parts of a plan: first the extension itself, then its parts in clusters, also in clusters that the plan does not name (any
/// more).
fn parts(plan: &Value) -> Vec<Part<'_>> {
    let config = plan["spec"]["config"].as_str().unwrap_or_default();
    let scheduling = &plan["spec"]["clusterScheduling"];
    let placement = &scheduling["placement"];
    let named: Vec<&str> =
        placement["clusters"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let statuses = &plan["status"]["clusterSchedulingStatuses"];
    // Without `clusterScheduling`, the controller ignores all of them.
    let found = statuses.as_object().filter(|_| scheduling.is_object()).into_iter().flatten();
    let others = found.map(|(cluster, _)| cluster.as_str()).filter(|cluster| !named.contains(cluster));
    // Named clusters take precedence over a selector. The status shows in which selected clusters the controller has begun.
    let is_selected = named.is_empty() && placement["clusterSelector"].is_object();
    let agents = named.iter().map(|cluster| (*cluster, false));
    let agents = agents.chain(others.map(|cluster| (cluster, !is_selected))).map(|(cluster, leaves)| Part {
        cluster: Some(cluster),
        status: &statuses[cluster],
        // The controller merges the values of this cluster, so their hash is unknown.
        hash: scheduling["overrides"].get(cluster).is_none().then(|| hash(config)),
        leaves,
    });
    let main = Part { cluster: None, status: &plan["status"], hash: Some(hash(config)), leaves: false };
    std::iter::once(main).chain(agents).collect()
}

/// All parts that are removed with a plan.
fn parts_of_deleted(plan: &Value) -> Vec<Part<'_>> {
    let clusters = plan["status"]["clusterSchedulingStatuses"].as_object();
    let agents = clusters.into_iter().flatten().map(|(cluster, status)| (Some(cluster.as_str()), status));
    let all = std::iter::once((None, &plan["status"])).chain(agents);
    all.map(|(cluster, status)| Part { cluster, status, hash: None, leaves: true }).collect()
}

fn version(plan: &Value) -> &str {
    plan["spec"]["extension"]["version"].as_str().unwrap_or_default()
}

/// Whether the extension is installed as the plan specifies.
pub fn readiness(plan: &Value) -> Readiness {
    let parts = parts(plan);
    let not_ready =
        parts.iter().map(|part| part.readiness(version(plan))).filter(|found| *found != Readiness::Ready);
    // A failure is more informative than a wait.
    let rank = |found: &Readiness| !matches!(found, Readiness::Failed(_));
    not_ready.min_by_key(rank).unwrap_or(Readiness::Ready)
}

/// A change of the plan after which the controller retries the failed parts. `None` if no part has failed, or if the controller
/// retries by itself.
pub fn try_again(plan: &Value) -> Option<Value> {
    let parts = parts(plan);
    let is_given_up = |part: &&Part<'_>| matches!(part.readiness(version(plan)), Readiness::Failed(_));
    change(parts.iter().filter(is_given_up), |part| {
        // A part that is wanted again is reinstalled.
        let mut to = if part.state() == "UninstallFailed" { part.restored() } else { json!({}) };
        to["configHash"] = "".into();
        to
    })
}

/// Whether the status reports a running Job.
pub fn is_busy(plan: &Value) -> bool {
    parts(plan).iter().any(|part| BUSY.contains(&part.state()))
}

/// A change after which the controller determines the state of busy parts again, from the Job and the helm release. The noted
/// state may be later than both, if it was written with another clock or by a process that was interrupted. An installation or an
/// upgrade begins again, because the controller notes the hash of the values before it applies them.
pub fn look_again(plan: &Value) -> Option<Value> {
    let parts = parts(plan);
    change(parts.iter().filter(|part| BUSY.contains(&part.state())), |part| {
        if part.state() == "Uninstalling" {
            part.restored()
        } else {
            json!({ "state": "", "stateHistory": null, "configHash": "" })
        }
    })
}

/// A change of a deleted plan after which the controller uninstalls again the parts that failed or have no running Job. `None` if
/// there is no such part. `live` contains the Jobs of the extension that have not ended.
pub fn remove_again(plan: &Value, live: &[String]) -> Option<Value> {
    let parts = parts_of_deleted(plan);
    // The controller may not have noted a Job yet. Such a Job can belong to any part.
    let is_noted = |job: &String| parts.iter().any(|part| part.job() == job);
    let is_idle = live.iter().all(is_noted);
    let hangs = |part: &Part<'_>| {
        part.state() == "Uninstalling" && is_idle && !live.iter().any(|job| job == part.job())
    };
    change(parts.iter().filter(|part| part.state() == "UninstallFailed" || hangs(part)), Part::restored)
}

/// The first failure that the controller reports for the removal of the extension or of its part in a cluster.
pub fn removal_failure(plan: &Value) -> Option<String> {
    let parts = parts_of_deleted(plan);
    let failed = parts.iter().find(|part| part.state() == "UninstallFailed")?;
    let place = failed.cluster.map_or_else(String::new, |cluster| format!("in the cluster {cluster}: "));
    Some(format!("{place}UninstallFailed{}", failed.message()))
}

fn change<'a>(parts: impl Iterator<Item = &'a Part<'a>>, to: impl Fn(&Part<'a>) -> Value) -> Option<Value> {
    let (mut status, mut clusters) = (Map::new(), Map::new());
    for part in parts {
        match part.cluster {
            None => status = to(part).as_object().cloned().unwrap_or_default(),
            Some(cluster) => drop(clusters.insert(cluster.to_owned(), to(part))),
        }
    }
    if !clusters.is_empty() {
        status.insert("clusterSchedulingStatuses".to_owned(), clusters.into());
    }
    (!status.is_empty()).then(|| json!({ "status": status }))
}

/// The controller's hash of values: 64-bit FNV-1a.
fn hash(config: &str) -> String {
    let of = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", config.bytes().fold(0xcbf2_9ce4_8422_2325, of))
}

#[cfg(test)]
mod tests {

    use super::*;

    /// Hash of the empty text, and of values.
    const EMPTY: &str = "cbf29ce484222325";

    fn plan(status: &Value) -> Value {
        json!({"spec": {"extension": {"name": "x", "version": "2"}}, "status": status})
    }

    #[test]
    fn values_have_the_hash_that_the_controller_notes() {
        // Test vectors of the authors of the hash.
        for (text, expected) in [("", EMPTY), ("a", "af63dc4c8601ec8c"), ("foobar", "85944171f73967e8")] {
            assert_eq!(hash(text), expected, "{text}");
        }
    }

    #[test]
    fn a_state_is_judged_by_what_the_controller_will_do() {
        for (case, status, expected, tries_again) in [
            ("nothing", json!({}), "waiting", false),
            ("installed", json!({"state": "Installed", "version": "2", "configHash": EMPTY}), "ready", false),
            (
                "other_version",
                json!({"state": "Installed", "version": "1", "configHash": EMPTY}),
                "waiting",
                false,
            ),
            (
                "other_values",
                json!({"state": "Installed", "version": "2", "configHash": "0"}),
                "waiting",
                false,
            ),
            ("busy", json!({"state": "Upgrading", "version": "2", "configHash": EMPTY}), "waiting", false),
            (
                "failed",
                json!({"state": "InstallFailed", "version": "2", "configHash": EMPTY}),
                "failed",
                true,
            ),
            (
                "upgrade_failed",
                json!({"state": "UpgradeFailed", "version": "2", "configHash": EMPTY}),
                "failed",
                true,
            ),
            // The controller retries by itself.
            (
                "failed_before",
                json!({"state": "UpgradeFailed", "version": "1", "configHash": EMPTY}),
                "waiting",
                false,
            ),
            ("never_begun", json!({"state": "InstallFailed", "configHash": ""}), "waiting", false),
        ] {
            let plan = plan(&status);
            let found = match readiness(&plan) {
                Readiness::Ready => "ready",
                Readiness::Waiting(_) => "waiting",
                Readiness::Failed(_) => "failed",
            };
            assert_eq!(found, expected, "{case}");
            let change = tries_again.then(|| json!({"status": {"configHash": ""}}));
            assert_eq!(try_again(&plan), change, "{case}");
            // The change makes the controller act.
            if let Some(change) = change {
                let mut then = plan.clone();
                then["status"]["configHash"] = change["status"]["configHash"].clone();
                assert!(matches!(readiness(&then), Readiness::Waiting(_)), "{case}");
            }
        }
    }

    #[test]
    fn a_part_in_a_cluster_counts_and_is_named() {
        let installed = json!({"state": "Installed", "version": "2", "configHash": EMPTY});
        let with = |agent: Value| {
            let mut plan = plan(&installed);
            plan["spec"]["clusterScheduling"] = json!({"placement": {"clusters": ["host"]}});
            plan["status"]["clusterSchedulingStatuses"] = json!({ "host": agent });
            plan
        };
        assert_eq!(readiness(&with(installed.clone())), Readiness::Ready);
        let none = Readiness::Waiting("in the cluster host: its controller has not begun".to_owned());
        assert_eq!(readiness(&with(json!({}))), none);
        let conditions = json!([{"status": "False", "message": "no image"}]);
        let failed = with(
            json!({"state": "InstallFailed", "version": "2", "configHash": EMPTY, "conditions": conditions}),
        );
        let text = "in the cluster host: InstallFailed: no image".to_owned();
        assert_eq!(readiness(&failed), Readiness::Failed(text));
        let change = json!({"status": {"clusterSchedulingStatuses": {"host": {"configHash": ""}}}});
        assert_eq!(try_again(&failed), Some(change));
        let busy_agent = with(json!({"state": "Installing", "jobName": "j"}));
        assert!(is_busy(&busy_agent));
        let again = json!({"state": "", "stateHistory": null, "configHash": ""});
        let change = json!({"status": {"clusterSchedulingStatuses": {"host": again}}});
        assert_eq!(look_again(&busy_agent), Some(change));
    }

    #[test]
    fn values_whose_upgrade_came_to_no_end_are_not_taken_for_applied() {
        // The controller notes the hash when the Job begins.
        let mut then = plan(&json!({"state": "Upgrading", "version": "2", "configHash": EMPTY}));
        then["status"]["configHash"] = look_again(&then).unwrap()["status"]["configHash"].clone();
        then["status"]["state"] = "Installed".into();
        assert!(matches!(readiness(&then), Readiness::Waiting(_)));
    }

    #[test]
    fn parts_in_clusters_that_are_not_named_count() {
        let installed = json!({"state": "Installed", "version": "2", "configHash": EMPTY});
        let with = |placement: Value, agent: Value| {
            let mut plan = plan(&installed);
            plan["spec"]["clusterScheduling"] = json!({ "placement": placement });
            plan["status"]["clusterSchedulingStatuses"] = json!({"host": installed, "far": agent});
            plan
        };
        let selected = |agent| with(json!({"clusterSelector": {"matchLabels": {"a": "b"}}}), agent);
        assert_eq!(readiness(&selected(installed.clone())), Readiness::Ready);
        let failed = json!({"state": "InstallFailed", "version": "2", "configHash": EMPTY});
        let text = "in the cluster far: InstallFailed".to_owned();
        assert_eq!(readiness(&selected(failed)), Readiness::Failed(text));
        // A part in a cluster that is no longer named has to be removed.
        let named = |agent| with(json!({"clusters": ["host"]}), agent);
        let text = "in the cluster far: Installed; it is to be uninstalled".to_owned();
        assert_eq!(readiness(&named(installed.clone())), Readiness::Waiting(text));
        let history = json!([{"state": "UninstallFailed", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        let failed = named(json!({"state": "UninstallFailed", "stateHistory": history}));
        assert!(matches!(readiness(&failed), Readiness::Failed(_)));
        let again = &try_again(&failed).unwrap()["status"];
        assert_eq!(again["clusterSchedulingStatuses"]["far"]["state"], "Installed");
        assert!(again["state"].is_null() && again["clusterSchedulingStatuses"]["host"].is_null());
        // The controller ignores these parts.
        let mut alone = failed;
        alone["spec"]["clusterScheduling"].take();
        assert_eq!(readiness(&alone), Readiness::Ready);
    }

    /// A status whose last entry is a second before midnight.
    fn noted(state: &str, job: &str) -> Value {
        let history = json!([
            {"state": state, "lastTransitionTime": "2026-01-01T23:59:59Z"},
            {"state": "Installed", "lastTransitionTime": "2026-01-01T12:00:00Z"},
        ]);
        json!({"state": state, "jobName": job, "stateHistory": history})
    }

    #[test]
    fn a_removal_that_failed_is_named_and_asked_for_again() {
        let conditions = json!([{"status": "False", "message": "a hook failed"}]);
        let mut status = noted("UninstallFailed", "j");
        status["conditions"] = conditions;
        let failed = plan(&status);
        assert_eq!(removal_failure(&failed).unwrap(), "UninstallFailed: a hook failed");
        let history = json!([{"state": "Installed", "lastTransitionTime": "2026-01-02T00:00:00Z"}]);
        let again = json!({"status": {"state": "Installed", "stateHistory": history, "jobName": ""}});
        assert_eq!(remove_again(&failed, &[]), Some(again));
        assert_eq!(removal_failure(&plan(&json!({"state": "Uninstalling"}))), None);
    }

    #[test]
    fn each_part_that_hangs_is_uninstalled_once_more_and_no_other() {
        let mut all = plan(&json!({"state": "Installed", "jobName": "old"}));
        all["status"]["clusterSchedulingStatuses"] = json!({
            "hangs": noted("Uninstalling", "gone"), "works": noted("Uninstalling", "runs"),
            "failed": noted("UninstallFailed", "x"), "there": noted("Installed", "y"),
        });
        let again = |live: &[&str]| -> Vec<String> {
            let live: Vec<String> = live.iter().map(|job| (*job).to_owned()).collect();
            let change = remove_again(&all, &live).unwrap_or_default();
            assert!(change["status"]["state"].is_null());
            let clusters = change["status"]["clusterSchedulingStatuses"].as_object();
            clusters.into_iter().flatten().map(|(cluster, _)| cluster.clone()).collect()
        };
        assert_eq!(again(&["runs"]), ["hangs", "failed"]);
        assert_eq!(again(&[]), ["hangs", "works", "failed"]);
        // A Job that no part names may belong to either of them.
        assert_eq!(again(&["other"]), ["failed"]);
        let mut main = plan(&noted("Uninstalling", "j"));
        assert!(remove_again(&main, &["j".to_owned()]).is_none());
        main["status"]["state"] = "Installed".into();
        assert!(remove_again(&main, &[]).is_none());
    }
}
