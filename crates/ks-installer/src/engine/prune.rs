//! Deletes objects of an inventory.

use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;

use super::adopted::Fate;
use super::inventory::{Entry, Inventory, Origin};
use super::removal_order::Step;
use super::{AT_ONCE, Engine, Failure};
use crate::api::Id;
use crate::payload::Component;
use crate::render::{Class, class_of_kind};

impl Engine {
    /// Deletes objects that the component no longer wants. Volumes and definitions contain data of users, so they are deleted
    /// only with the component.
    pub(super) async fn prune(
        &self,
        component: &Component,
        inventory: &mut Inventory,
        objects: &[Value],
    ) -> Result<(), Failure> {
        let wanted: Vec<Id> = objects.iter().map(Id::of).collect();
        // An object that is wanted in another version of its API is the same object.
        inventory.objects.retain(|entry| {
            wanted.contains(&entry.id) || !wanted.iter().any(|id| id.is_same_object(&entry.id))
        });
        let outdated: Vec<Entry> =
            inventory.objects.iter().filter(|entry| !wanted.contains(&entry.id)).cloned().collect();
        for step in Step::ALL {
            let these: Vec<Entry> = outdated
                .iter()
                .filter(|entry| Step::of(&entry.id) == step && !holds_data(&entry.id))
                .cloned()
                .collect();
            self.delete_all(&component.name, inventory, &these, component.time_to_go()).await?;
            let outlived = self.outlived(&these).await?;
            inventory.objects.retain(|entry| !these.contains(entry));
            // A removal of the component has to wait for their pods.
            inventory.objects.extend(outlived.into_iter().map(|id| Entry::new(id, Origin::Created)));
        }
        for entry in inventory.objects.iter_mut().filter(|entry| !wanted.contains(&entry.id)) {
            entry.live.clear();
        }
        Ok(())
    }

    /// Deletes objects of an inventory and waits until they are gone. Adopted objects stay and are restored.
    pub(super) async fn delete_all(
        &self,
        component: &str,
        inventory: &Inventory,
        entries: &[Entry],
        time: std::time::Duration,
    ) -> Result<(), Failure> {
        let delete = |entry: Entry| async move {
            let id = &entry.id;
            let Some(live) = self.api.get(id).await.map_err(Failure::at(id))? else {
                let former = entry.former()?;
                let stays =
                    |former: &&Value| entry.fate(former, component, &inventory.releases) == Fate::GiveBack;
                if let Some(former) = former.as_ref().filter(stays) {
                    self.restore(component, &entry, former).await?;
                }
                return Ok(None);
            };
            match entry.fate(&live, component, &inventory.releases) {
                Fate::Delete => {}
                Fate::GiveBack => {
                    tracing::info!(component, "{id} was there before, it stays");
                    self.give_back(component, &entry, &live).await?;
                    return Ok(None);
                }
                Fate::Leave => {
                    tracing::warn!(component, "{id} belongs to another owner by now, it stays");
                    return Ok(None);
                }
            }
            let uid = live["metadata"]["uid"].as_str().unwrap_or_default();
            let is_gone = self.delete_here(id, uid).await?;
            Ok((!is_gone).then(|| (id.clone(), uid.to_owned())))
        };
        let results = stream::iter(entries.to_vec()).map(delete).buffered(AT_ONCE);
        let deleted: Vec<_> = results.try_filter_map(|left| async { Ok(left) }).try_collect().await?;
        self.wait_gone(&deleted, time).await
    }
}

/// Whether a deletion of the object also deletes data of users.
pub(super) fn holds_data(id: &Id) -> bool {
    let class = class_of_kind(&id.api_version, &id.kind);
    class == Class::Definition || class == Class::Namespace || is_volume_or_secret(id)
}

/// Whether the data policy applies to the object.
pub(super) fn is_volume_or_secret(id: &Id) -> bool {
    id.api_version == "v1"
        && matches!(id.kind.as_str(), "PersistentVolumeClaim" | "PersistentVolume" | "Secret")
}
