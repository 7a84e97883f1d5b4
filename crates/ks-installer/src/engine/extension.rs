//! Completes the plans of extensions of KubeSphere 4. An `InstallPlan` is an object of its component like any other. This module
//! adds values that only the cluster knows: the version that a repository recommends, and whether the extension has a part in
//! each cluster.
//!
//! If no repository publishes the version, the controller of plans does nothing and reports nothing. Therefore, this is checked
//! before the plan is written. `engine/repair.rs` handles plans that the controller gives up later.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use super::pass::Progress;
use super::wait::Pause;
use super::{Engine, Failure, Reason};
use crate::api::{Id, Readiness, install_plan};
use crate::payload::{Component, extension};

/// Label of all objects of an extension.
pub(super) const EXTENSION_LABEL: &str = "kubesphere.io/extension-ref";

/// API groups and kinds that are read for plans.
pub const LOOKED_AT: [(&str, &str); 4] = [
    ("kubesphere.io", "Extension"),
    ("kubesphere.io", "ExtensionVersion"),
    ("kubesphere.io", "Repository"),
    ("batch", "Job"),
];
/// API groups and kinds that are deleted in addition to the plans: helm's records.
pub const DELETED: [(&str, &str); 1] = [("", "Secret")];

/// Result of the search for the version of a plan.
enum Published {
    /// The version, as a repository publishes it.
    Version(Value),
    /// The version is no longer published, but the extension is installed as wanted, so the controller has nothing to do.
    NoMore,
    /// The version is not published.
    Nothing(Failure),
}

impl Engine {
    /// The objects of a component with completed plans. Without `progress`, it waits for nothing.
    pub(super) async fn complete_plans(
        &self,
        component: &Component,
        spec: &Value,
        objects: Arc<Vec<Value>>,
        progress: Option<&Progress<'_>>,
    ) -> Result<Arc<Vec<Value>>, Failure> {
        if component.extensions().next().is_none() {
            return Ok(objects);
        }
        let mut objects = Arc::unwrap_or_clone(objects);
        for plan in objects.iter_mut().filter(|object| install_plan::is_plan(&Id::of(object))) {
            self.complete_plan(component, spec, plan, progress).await?;
        }
        Ok(Arc::new(objects))
    }

    async fn complete_plan(
        &self,
        component: &Component,
        spec: &Value,
        plan: &mut Value,
        progress: Option<&Progress<'_>>,
    ) -> Result<(), Failure> {
        let id = Id::of(plan);
        let mut live = self.api.get(&id).await.map_err(Failure::at(&id))?.unwrap_or_default();
        if let (Some(progress), Some(uid)) = (progress, uid_of_deleted(&live)) {
            progress.waits(&format!("{id} is removed before it is made again"));
            self.wait_gone(&[(id, uid)], component.time_to_go()).await?;
            live = Value::Null;
        }
        let (until, mut pause) = (Instant::now() + component.time_to_ready(), Pause::begin());
        loop {
            let failure = match self.published(plan, &live).await? {
                Published::Version(found) => {
                    let is_placed = found["spec"]["installationMode"] == "Multicluster";
                    place(plan, is_placed.then_some(&live), spec);
                    plan["spec"]["extension"]["version"] = found["spec"]["version"].clone();
                    if progress.is_none() {
                        // In a dry run, the required extensions may not be installed yet.
                        return Ok(());
                    }
                    return self.check_dependencies(plan, &live, &found).await;
                }
                Published::NoMore => {
                    let is_placed = live["spec"]["clusterScheduling"].is_object();
                    place(plan, is_placed.then_some(&live), spec);
                    plan["spec"]["extension"]["version"] = live["spec"]["extension"]["version"].clone();
                    return Ok(());
                }
                Published::Nothing(failure) => failure,
            };
            let repositories = self.of_kind("Repository", "").await?;
            let Some(progress) = progress else {
                // The repositories exist only after the core of KubeSphere runs.
                return if repositories.is_empty() { Ok(()) } else { Err(failure) };
            };
            let unread = repositories
                .iter()
                .find(|one| one["spec"]["url"].is_string() && one["status"]["lastSyncTime"].is_null());
            match unread.map(Id::of) {
                Some(repository) if Instant::now() < until => {
                    progress.waits(&format!("{repository} has not been read yet"));
                    pause.sleep().await;
                }
                Some(repository) => {
                    let text = format!("{failure}; {repository} could not be read");
                    return Err(Failure::new(failure.reason, self.with_event(&repository, text).await));
                }
                None => return Err(failure),
            }
        }
    }

    /// The published version for a plan: the version that the plan names, else the installed version, else the recommended
    /// version.
    async fn published(&self, plan: &Value, live: &Value) -> Result<Published, Failure> {
        let extension = &plan["spec"]["extension"];
        let name = extension["name"].as_str().unwrap_or_default();
        let pinned = extension["version"].as_str();
        let there = live["spec"]["extension"]["version"].as_str();
        if let Some(version) = pinned.or(there) {
            if let Some(found) = self.extension_version(name, version).await? {
                return Ok(Published::Version(found));
            }
            if live["status"]["state"] == "Installed" && live["status"]["version"] == version {
                return Ok(if is_as_wanted(plan, live) {
                    Published::NoMore
                } else {
                    nothing(
                        &format!(
                            "the extension {name} is installed in version {version}, which no repository publishes any more: its \
                             values and clusters cannot be changed"
                        ),
                        &format!(
                            "name another version in extensions.{name}.version, or publish this one again"
                        ),
                    )
                });
            }
        }
        let id = Id::new(install_plan::API_VERSION, "Extension", "", name);
        let Some(known) = self.api.get(&id).await.map_err(Failure::at(&id))? else {
            let text = format!("no repository publishes the extension {name}");
            let hint = "see `kubectl get extensions` and `kubectl get repositories.kubesphere.io`; in a member cluster, extensions are \
                        installed by the host cluster";
            return Ok(nothing(&text, hint));
        };
        let recommended = known["status"]["recommendedVersion"].as_str().filter(|text| !text.is_empty());
        let versions: Vec<&str> = known["status"]["versions"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|one| one["version"].as_str())
            .collect();
        let has = if versions.is_empty() {
            "it has none".to_owned()
        } else {
            format!("it has {}", versions.join(", "))
        };
        let hint = format!("name one of its versions in extensions.{name}.version");
        match (pinned, recommended) {
            (Some(version), _) => Ok(nothing(
                &format!("no repository publishes the extension {name} in version {version}; {has}"),
                &hint,
            )),
            (None, None) => Ok(nothing(
                &format!("no version of the extension {name} is recommended for this cluster; {has}"),
                &hint,
            )),
            (None, Some(version)) => Ok(match self.extension_version(name, version).await? {
                Some(found) => Published::Version(found),
                None => nothing(
                    &format!("no repository publishes the extension {name} in version {version}; {has}"),
                    &hint,
                ),
            }),
        }
    }

    /// Checks that the extensions that this one requires are installed. If the payload declares the order, their components are
    /// installed first.
    async fn check_dependencies(&self, plan: &Value, live: &Value, version: &Value) -> Result<(), Failure> {
        let name = &plan["spec"]["extension"]["name"];
        if live["status"]["state"] == "Installed" {
            return Ok(());
        }
        let dependencies = version["spec"]["externalDependencies"].as_array();
        let required = dependencies.into_iter().flatten().filter(|one| {
            one["required"] == true
                && one["type"].as_str().is_none_or(|kind| matches!(kind, "" | "extension"))
        });
        for dependency in required {
            let other = dependency["name"].as_str().unwrap_or_default();
            let id = Id::new(install_plan::API_VERSION, install_plan::KIND, "", other);
            let found = self.api.get(&id).await.map_err(Failure::at(&id))?;
            let why = match found.as_ref().map(install_plan::readiness) {
                Some(Readiness::Ready) => continue,
                Some(Readiness::Waiting(why) | Readiness::Failed(why)) => why,
                None => "it has no InstallPlan".to_owned(),
            };
            let versions = dependency["version"].as_str().unwrap_or_default();
            let message = format!(
                "the extension {} requires {other} {versions}, which is not installed: {why}\nhint: set extensions.{other}.enabled",
                name.as_str().unwrap_or_default()
            );
            return Err(Failure::new(Reason::RequirementMissing, message));
        }
        Ok(())
    }

    /// A version of an extension, if a repository publishes it.
    pub(super) async fn extension_version(
        &self,
        name: &str,
        version: &str,
    ) -> Result<Option<Value>, Failure> {
        let id = Id::new(install_plan::API_VERSION, "ExtensionVersion", "", &format!("{name}-{version}"));
        self.api.get(&id).await.map_err(Failure::at(&id))
    }

    /// All versions of an extension that repositories publish.
    pub(super) async fn extension_versions(&self, name: &str) -> Result<Vec<Value>, Failure> {
        self.of_kind("ExtensionVersion", &format!("labelSelector={EXTENSION_LABEL}={name}")).await
    }

    async fn of_kind(&self, kind: &str, query: &str) -> Result<Vec<Value>, Failure> {
        let all = Id::new(install_plan::API_VERSION, kind, "", "");
        self.api.list(&all, query).await.map_err(Failure::at(&all))
    }
}

fn nothing(text: &str, hint: &str) -> Published {
    Published::Nothing(Failure::new(Reason::NotPublished, format!("{text}\nhint: {hint}")))
}

/// Sets the clusters for the part of an extension, unless the plan sets them: the current clusters, or initially the cluster of
/// ks-installer. An extension without such a part (no `live`) cannot be placed.
fn place(plan: &mut Value, live: Option<&Value>, spec: &Value) {
    let Some(wanted) = plan["spec"].as_object_mut() else { return };
    match live.map(|live| &live["spec"]["clusterScheduling"]["placement"]) {
        None => drop(wanted.shift_remove("clusterScheduling")),
        Some(_) if wanted.contains_key("clusterScheduling") => {}
        Some(placement @ Value::Object(_)) => {
            wanted.insert("clusterScheduling".to_owned(), json!({ "placement": placement }));
        }
        Some(_) => {
            let host = extension::host_of(spec);
            wanted.insert("clusterScheduling".to_owned(), json!({ "placement": { "clusters": [host] } }));
        }
    }
}

/// Whether an existing plan has the values that this plan sets, and is carried out.
fn is_as_wanted(plan: &Value, live: &Value) -> bool {
    let is_same = |path: &str| plan.pointer(path).is_none_or(|wanted| live.pointer(path) == Some(wanted));
    // An extension without a part in clusters cannot be placed.
    let is_placed = live["spec"]["clusterScheduling"].is_object();
    is_same("/spec/config")
        && (!is_placed || is_same("/spec/clusterScheduling/placement/clusters"))
        && install_plan::readiness(live) == Readiness::Ready
}

fn uid_of_deleted(live: &Value) -> Option<String> {
    let metadata = &live["metadata"];
    let uid = metadata["uid"].as_str()?;
    metadata["deletionTimestamp"].is_string().then(|| uid.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_as_wanted_when_nothing_has_to_be_done() {
        // The hash of the text `a`.
        let status = json!({"state": "Installed", "version": "1", "configHash": "af63dc4c8601ec8c"});
        let spec = |config: &str, clusters: Value| {
            let clusters = json!({ "placement": { "clusters": clusters } });
            json!({"extension": {"version": "1"}, "config": config, "clusterScheduling": clusters})
        };
        let mut live = json!({"spec": spec("a", json!([])), "status": status});
        for (wanted, expected) in [
            (json!({}), true),
            (spec("a", json!([])), true),
            (spec("b", json!([])), false),
            (spec("a", json!(["host"])), false),
        ] {
            assert_eq!(is_as_wanted(&json!({ "spec": wanted }), &live), expected, "{wanted}");
        }
        // The plan has this value, but its controller did not apply it.
        live["spec"]["config"] = "b".into();
        assert!(!is_as_wanted(&json!({"spec": spec("b", json!([]))}), &live));
    }

    #[test]
    fn a_part_in_clusters_stays_where_it_is_unless_the_spec_says_another_place() {
        let placed =
            |clusters: &[&str]| json!({"spec": {"clusterScheduling": {"placement": {"clusters": clusters}}}});
        let (none, main) = (json!({"spec": {}}), json!({"multicluster": {"hostClusterName": "main"}}));
        for (wanted, live, spec, expected) in [
            (&none, Some(&none), &json!({}), &placed(&["host"])),
            (&none, Some(&none), &main, &placed(&["main"])),
            (&none, Some(&placed(&["a", "b"])), &main, &placed(&["a", "b"])),
            (&placed(&["c"]), Some(&placed(&["a", "b"])), &main, &placed(&["c"])),
            // The extension has no part in clusters.
            (&placed(&["c"]), None, &main, &none),
        ] {
            let mut plan = wanted.clone();
            place(&mut plan, live, spec);
            assert_eq!(plan, *expected);
        }
    }
}
