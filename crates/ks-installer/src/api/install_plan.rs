//! `InstallPlan` of KubeSphere 4: what its controller, ks-controller-manager, makes of one, and how it is asked for more.
//!
//! Facts of the controller (version 4.1.3, `pkg/controller/core`): it begins an installation or an upgrade when the status has no
//! hash of the values, another one, or another version; a failed one it leaves for ever otherwise. What it sees of Jobs and of helm's
//! releases it only notes when that is later than the last entry of `stateHistory`. `status` is no subresource.

use serde_json::{Map, Value, json};

use super::{Id, Readiness};

/// Its API version.
pub const API_VERSION: &str = "kubesphere.io/v1alpha1";
/// Its kind.
pub const KIND: &str = "InstallPlan";
/// What keeps one until its extension is uninstalled.
pub const FINALIZER: &str = "kubesphere.io/installplan-protection";
/// The annotation by which the controller forgets an extension, and leaves its objects.
pub const FORCE_DELETE: &str = "kubesphere.io/force-delete";

/// States in which a Job of helm is at work, or is about to begin.
const BUSY: [&str; 4] = ["Preparing", "Installing", "Upgrading", "Uninstalling"];

/// Whether an object is a plan.
pub fn is_plan(id: &Id) -> bool {
    id.kind == KIND && id.api_version == API_VERSION
}

/// What the controller says of one release: that of the extension, or of its part in one cluster.
struct Part<'a> {
    cluster: Option<&'a str>,
    status: &'a Value,
    /// Hash of the values that it shall have; `None` when that cannot be told here.
    hash: Option<String>,
}

impl Part<'_> {
    fn state(&self) -> &str {
        self.status["state"].as_str().unwrap_or_default()
    }

    /// Whether the controller will do something by itself, because the release is not what the plan asks for.
    fn is_outdated(&self, version: &str) -> bool {
        let found = self.status["configHash"].as_str().unwrap_or_default();
        let installed = self.status["version"].as_str().unwrap_or_default();
        found.is_empty()
            || self.hash.as_ref().is_some_and(|hash| hash != found)
            || !installed.is_empty() && installed != version
    }

    /// What the controller said last, if that was a failure.
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
            "Installed" | "Upgraded" if !self.is_outdated(version) => Readiness::Ready,
            "Installed" | "Upgraded" => {
                Readiness::Waiting(format!("{place}its controller has not seen the change"))
            }
            "" => Readiness::Waiting(format!("{place}its controller has not begun")),
            "InstallFailed" | "UpgradeFailed" | "UninstallFailed" => {
                let text = format!("{place}{state}{}", self.message());
                // It is about something that is not wanted any more, or is tried again without us.
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

/// The parts of a plan: the extension itself, then those in clusters.
fn parts(plan: &Value) -> Vec<Part<'_>> {
    let config = plan["spec"]["config"].as_str().unwrap_or_default();
    let scheduling = &plan["spec"]["clusterScheduling"];
    let clusters = scheduling["placement"]["clusters"].as_array();
    let agents = clusters.into_iter().flatten().filter_map(Value::as_str).map(|cluster| Part {
        cluster: Some(cluster),
        status: &plan["status"]["clusterSchedulingStatuses"][cluster],
        // With values of its own they are merged by the controller.
        hash: scheduling["overrides"].get(cluster).is_none().then(|| hash(config)),
    });
    let main = Part { cluster: None, status: &plan["status"], hash: Some(hash(config)) };
    std::iter::once(main).chain(agents).collect()
}

fn version(plan: &Value) -> &str {
    plan["spec"]["extension"]["version"].as_str().unwrap_or_default()
}

/// Whether the extension is installed as the plan asks for it.
pub fn readiness(plan: &Value) -> Readiness {
    let parts = parts(plan);
    let not_ready =
        parts.iter().map(|part| part.readiness(version(plan))).filter(|found| *found != Readiness::Ready);
    // A failure says more than a wait.
    let rank = |found: &Readiness| !matches!(found, Readiness::Failed(_));
    not_ready.min_by_key(rank).unwrap_or(Readiness::Ready)
}

/// A change of the plan by which the controller tries once more what has failed; `None` when nothing has, or when it does so
/// by itself.
pub fn try_again(plan: &Value) -> Option<Value> {
    let is_given_up = |part: &&Part<'_>| matches!(part.readiness(version(plan)), Readiness::Failed(_));
    change(parts(plan).iter().filter(is_given_up), &json!({ "configHash": "" }))
}

/// Releases in which something is said to be at work: by which Job.
pub fn busy(plan: &Value) -> Vec<String> {
    let parts = parts(plan);
    let busy = parts.iter().filter(|part| BUSY.contains(&part.state()));
    busy.map(|part| part.status["jobName"].as_str().unwrap_or_default().to_owned()).collect()
}

/// A change by which the controller makes up its mind anew about what is said to be at work, from its Job and from helm's release:
/// what it has noted may be later than both by another clock, or of a process that ended in the middle.
pub fn look_again(plan: &Value) -> Option<Value> {
    let parts = parts(plan);
    let busy = parts.iter().filter(|part| BUSY.contains(&part.state()));
    change(busy, &json!({ "state": "", "stateHistory": null }))
}

/// The same for a removal: the controller leaves one that has failed, whose Job it goes on to look at.
pub fn remove_again(plan: &Value) -> Value {
    let forget = json!({ "state": "", "stateHistory": null, "jobName": "" });
    let clusters: Map<String, Value> = plan["status"]["clusterSchedulingStatuses"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, status)| removal_failed(status))
        .map(|(cluster, _)| (cluster.clone(), forget.clone()))
        .collect();
    let mut status = if removal_failed(&plan["status"]) { forget } else { json!({}) };
    if !clusters.is_empty() {
        status["clusterSchedulingStatuses"] = clusters.into();
    }
    json!({ "status": status })
}

/// Whether a release could not be removed.
fn removal_failed(status: &Value) -> bool {
    matches!(status["state"].as_str(), Some("UninstallFailed" | "Uninstalling"))
}

/// What the controller says of the removal of the extension, or of its part in a cluster: the first that has failed.
pub fn removal_failure(plan: &Value) -> Option<String> {
    let clusters = plan["status"]["clusterSchedulingStatuses"].as_object();
    let agents =
        clusters.into_iter().flatten().map(|(name, status)| Part { cluster: Some(name), status, hash: None });
    let main = Part { cluster: None, status: &plan["status"], hash: None };
    let failed = std::iter::once(main).chain(agents).find(|part| part.state() == "UninstallFailed")?;
    let place = failed.cluster.map_or_else(String::new, |cluster| format!("in the cluster {cluster}: "));
    Some(format!("{place}UninstallFailed{}", failed.message()))
}

fn change<'a>(parts: impl Iterator<Item = &'a Part<'a>>, to: &Value) -> Option<Value> {
    let (mut status, mut clusters) = (Map::new(), Map::new());
    for part in parts {
        match part.cluster {
            None => status = to.as_object().cloned().unwrap_or_default(),
            Some(cluster) => drop(clusters.insert(cluster.to_owned(), to.clone())),
        }
    }
    if !clusters.is_empty() {
        status.insert("clusterSchedulingStatuses".to_owned(), clusters.into());
    }
    (!status.is_empty()).then(|| json!({ "status": status }))
}

/// What the controller notes of values: 64 bits of FNV-1a.
fn hash(config: &str) -> String {
    let of = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", config.bytes().fold(0xcbf2_9ce4_8422_2325, of))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Of the empty text, and of values.
    const EMPTY: &str = "cbf29ce484222325";

    fn plan(status: &Value) -> Value {
        json!({"spec": {"extension": {"name": "x", "version": "2"}}, "status": status})
    }

    #[test]
    fn values_have_the_hash_that_the_controller_notes() {
        // From the list of test vectors of the hash's authors.
        for (text, expected) in [("", EMPTY), ("a", "af63dc4c8601ec8c"), ("foobar", "85944171f73967e8")] {
            assert_eq!(hash(text), expected, "{text}");
        }
    }

    #[rstest]
    #[case::nothing(json!({}), "waiting", false)]
    #[case::installed(json!({"state": "Installed", "version": "2", "configHash": EMPTY}), "ready", false)]
    #[case::other_version(json!({"state": "Installed", "version": "1", "configHash": EMPTY}), "waiting", false)]
    #[case::other_values(json!({"state": "Installed", "version": "2", "configHash": "0"}), "waiting", false)]
    #[case::busy(json!({"state": "Upgrading", "version": "2", "configHash": EMPTY}), "waiting", false)]
    #[case::failed(json!({"state": "InstallFailed", "version": "2", "configHash": EMPTY}), "failed", true)]
    #[case::upgrade_failed(json!({"state": "UpgradeFailed", "version": "2", "configHash": EMPTY}), "failed", true)]
    // The controller begins again by itself.
    #[case::failed_before(json!({"state": "UpgradeFailed", "version": "1", "configHash": EMPTY}), "waiting", false)]
    #[case::never_begun(json!({"state": "InstallFailed", "configHash": ""}), "waiting", false)]
    fn a_state_is_judged_by_what_the_controller_will_do(
        #[case] status: Value,
        #[case] expected: &str,
        #[case] tries_again: bool,
    ) {
        let plan = plan(&status);
        let found = match readiness(&plan) {
            Readiness::Ready => "ready",
            Readiness::Waiting(_) => "waiting",
            Readiness::Failed(_) => "failed",
        };
        assert_eq!(found, expected);
        let change = tries_again.then(|| json!({"status": {"configHash": ""}}));
        assert_eq!(try_again(&plan), change);
        // What is asked for makes it one that the controller works on.
        if let Some(change) = change {
            let mut then = plan.clone();
            then["status"]["configHash"] = change["status"]["configHash"].clone();
            assert!(matches!(readiness(&then), Readiness::Waiting(_)));
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
        assert_eq!(busy(&busy_agent), ["j"]);
        let change =
            json!({"status": {"clusterSchedulingStatuses": {"host": {"state": "", "stateHistory": null}}}});
        assert_eq!(look_again(&busy_agent), Some(change));
    }

    #[test]
    fn a_removal_that_failed_is_named_and_asked_for_again() {
        let conditions = json!([{"status": "False", "message": "a hook failed"}]);
        let failed = plan(&json!({"state": "UninstallFailed", "jobName": "j", "conditions": conditions}));
        assert_eq!(removal_failure(&failed).unwrap(), "UninstallFailed: a hook failed");
        let forgotten = json!({"status": {"state": "", "stateHistory": null, "jobName": ""}});
        assert_eq!(remove_again(&failed), forgotten);
        assert_eq!(removal_failure(&plan(&json!({"state": "Uninstalling"}))), None);
    }
}
