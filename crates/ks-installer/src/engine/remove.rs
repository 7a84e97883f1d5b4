//! Removes a component that is switched off.

use std::time::Duration;

use serde_json::Value;

use super::adopted::Fate;
use super::inventory::{Entry, Inventory, Origin};
use super::pass::Progress;
use super::prune::is_volume_or_secret;
use super::removal_order::{Step, rank_of_instances};
use super::{Engine, Failure};
use crate::api::Id;
use crate::payload::{Component, GONE_WITHIN};

/// Policy for volumes and Secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DataPolicy {
    Retain,
    Delete,
}

impl Engine {
    /// Removes all objects of a component, step by step. `definition` is `None` if the payload no longer contains the component.
    pub(super) async fn remove(
        &self,
        name: &str,
        definition: Option<&Component>,
        spec: &Value,
        progress: &Progress<'_>,
    ) -> Result<(), Failure> {
        let Some(mut inventory) = self.inventories.get(name) else { return Ok(()) };
        progress.removes();
        let has = |inventory: &Inventory, step: Step| {
            inventory.objects.iter().any(|entry| Step::of(&entry.id) == step)
        };
        let traces = definition.map_or(&[][..], |component| &component.remove.traces);
        let leaves_traces = has(&inventory, Step::Definitions) || !traces.is_empty();
        if inventory.ready || !inventory.hash.is_empty() {
            // If the component is switched on again during the removal, all objects have to be checked.
            inventory = Inventory { hash: String::new(), ready: false, ..inventory };
            inventory.objects.iter_mut().for_each(|entry| entry.applied.clear());
            self.inventories.save(name, inventory.clone()).await?;
        }
        let time = definition.map_or(GONE_WITHIN, Component::time_to_go);
        let policy = policy(definition, spec);
        for step in Step::ALL {
            if has(&inventory, step) || step == Step::CustomResources && has(&inventory, Step::Definitions) {
                progress.waits(&format!("removing: {step:?}"));
            }
            if step == Step::CustomResources {
                self.delete_instances(name, &inventory, time, progress).await?;
            }
            let mut these: Vec<Entry> =
                inventory.objects.iter().filter(|entry| Step::of(&entry.id) == step).cloned().collect();
            if policy == DataPolicy::Retain {
                these.retain(|entry| entry.origin == Origin::Adopted || !is_volume_or_secret(&entry.id));
                self.keep_namespaces_with_data(&mut these, &inventory).await?;
            }
            if step == Step::Workloads && policy == DataPolicy::Delete {
                // The templates in the StatefulSets name the claims, so the claims are deleted first. They disappear after the
                // pods.
                self.delete_claims_of(name, &inventory, &these).await?;
            }
            self.delete_all(name, &inventory, &these, time).await?;
            if step == Step::Workloads && leaves_traces && self.is_unattended(&inventory).await? {
                // A pod that does not end is a failure only if there is something to strip.
                let ended = self.wait_ended(&inventory, progress).await;
                self.delete_instances(name, &inventory, time, progress).await?;
                self.remove_traces(traces, &ended).await?;
            }
        }
        if policy == DataPolicy::Delete {
            let id = self.generated_id(name);
            self.api.delete(&id, "").await.map_err(Failure::at(&id))?;
        }
        self.forget_releases(&mut inventory, &[]).await?;
        self.inventories.forget(name).await
    }

    /// Deletes all objects of the kinds that the component defined, including objects of users, because their kind is removed
    /// with it. If no controller is left, the finalizers of these objects are removed.
    async fn delete_instances(
        &self,
        component: &str,
        inventory: &Inventory,
        time: Duration,
        progress: &Progress<'_>,
    ) -> Result<(), Failure> {
        let definitions = inventory.objects.iter().filter(|entry| Step::of(&entry.id) == Step::Definitions);
        let mut kinds = Vec::new();
        for entry in definitions.filter(|entry| entry.origin == Origin::Created) {
            let Some(live) = self.api.get(&entry.id).await.map_err(Failure::at(&entry.id))? else { continue };
            if entry.fate(&live, component, &inventory.releases) == Fate::Delete {
                kinds.extend(kind_of(&live));
            }
        }
        kinds.sort_by_key(rank_of_instances);
        self.leave_projects(&kinds, inventory).await?;
        for kind in kinds {
            let instances = self.api.list(&kind, "").await.map_err(Failure::at(&kind))?;
            let mut deleted = Vec::new();
            for instance in &instances {
                let id = Id::of(instance);
                let uid = instance["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
                if !self.delete_here(&id, &uid).await? {
                    deleted.push((id, uid));
                }
            }
            if !deleted.is_empty() && self.is_unattended(inventory).await? {
                let ended = self.wait_ended(inventory, progress).await;
                for (id, uid) in &deleted {
                    self.release(id, uid, &ended).await?;
                }
            }
            self.wait_gone(&deleted, time).await?;
        }
        Ok(())
    }

    /// Keeps namespaces that contain volumes or Secrets, because a deletion would include them.
    async fn keep_namespaces_with_data(
        &self,
        these: &mut Vec<Entry>,
        inventory: &Inventory,
    ) -> Result<(), Failure> {
        let mut kept = Vec::new();
        let made = these.iter().filter(|entry| entry.origin == Origin::Created);
        for entry in made.filter(|entry| Step::of(&entry.id) == Step::Namespaces) {
            let claims = Id::new("v1", "PersistentVolumeClaim", &entry.id.name, "");
            let mut has_data =
                !self.api.list(&claims, "limit=1").await.map_err(Failure::at(&claims))?.is_empty();
            let inside = inventory.objects.iter().map(|entry| &entry.id);
            for id in inside.filter(|id| id.namespace == entry.id.name && is_volume_or_secret(id)) {
                has_data = has_data || self.api.get(id).await.map_err(Failure::at(id))?.is_some();
            }
            if has_data {
                kept.push(entry.id.clone());
            }
        }
        these.retain(|entry| !kept.contains(&entry.id));
        Ok(())
    }

    /// Deletes the claims that a `StatefulSet` created from its templates. Kubernetes does not delete them.
    async fn delete_claims_of(
        &self,
        component: &str,
        inventory: &Inventory,
        entries: &[Entry],
    ) -> Result<(), Failure> {
        let made = entries.iter().filter(|entry| entry.origin == Origin::Created);
        for entry in made.filter(|entry| entry.id.kind == "StatefulSet") {
            let id = &entry.id;
            let Some(set) = self.api.get(id).await.map_err(Failure::at(id))? else { continue };
            if entry.fate(&set, component, &inventory.releases) != Fate::Delete {
                continue;
            }
            let templates = set["spec"]["volumeClaimTemplates"].as_array();
            let names =
                templates.into_iter().flatten().filter_map(|claim| claim["metadata"]["name"].as_str());
            let prefixes: Vec<String> = names.map(|name| format!("{name}-{}-", id.name)).collect();
            let all = Id::new("v1", "PersistentVolumeClaim", &id.namespace, "");
            for claim in self.api.list(&all, "").await.map_err(Failure::at(&all))? {
                let claim_id = Id::of(&claim);
                let number =
                    |prefix: &String| claim_id.name.strip_prefix(prefix.as_str()).map(str::parse::<u32>);
                if prefixes.iter().filter_map(number).any(|number| number.is_ok()) {
                    let uid = claim["metadata"]["uid"].as_str().unwrap_or_default();
                    self.api.delete(&claim_id, uid).await.map_err(Failure::at(&claim_id))?;
                }
            }
        }
        Ok(())
    }
}

/// The kind of a definition, in the first version that is served.
pub(super) fn kind_of(definition: &Value) -> Option<Id> {
    let spec = &definition["spec"];
    let versions = spec["versions"].as_array()?;
    let version = versions.iter().find(|version| version["served"] == true)?["name"].as_str()?;
    let api_version = format!("{}/{version}", spec["group"].as_str()?);
    Some(Id::new(&api_version, spec["names"]["kind"].as_str()?, "", ""))
}

/// The policy of the component, otherwise the general policy, otherwise `Retain`, because lost data cannot be restored.
fn policy(definition: Option<&Component>, spec: &Value) -> DataPolicy {
    let own = definition.and_then(|component| component.data_policy.as_deref());
    let own = own.and_then(|path| path.split('.').try_fold(spec, |at, key| at.get(key)));
    let said = own.filter(|value| value.is_string()).unwrap_or(&spec["dataPolicy"]);
    if said == "Delete" { DataPolicy::Delete } else { DataPolicy::Retain }
}
