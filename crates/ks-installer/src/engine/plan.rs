//! Computes the changes of a pass without writing anything.

use std::fmt;

use serde_json::Value;

use super::desired::desired;
use super::inventory::{Entry, Origin};
use super::{Engine, Failure};
use crate::api::{ApiError, Id, contains, differences};
use crate::payload::Component;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// An object is created.
    Create(Id),
    /// An object is changed at these paths.
    Change(Id, Vec<String>),
    /// An object is deleted.
    Delete(Id),
    /// An object that existed before stays, and its changes are reverted.
    GiveBack(Id),
    /// The change is unknown, for this reason.
    Unknown(String),
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(id) => write!(formatter, "+ {id}"),
            Self::Change(id, paths) => write!(formatter, "~ {id}: {}", paths.join(", ")),
            Self::Delete(id) => write!(formatter, "- {id}"),
            Self::GiveBack(id) => write!(formatter, "= {id}: it stays as it was before"),
            Self::Unknown(why) => write!(formatter, "? {why}"),
        }
    }
}

impl Engine {
    /// All changes that `spec` would cause, by component.
    pub async fn plan(&self, spec: &Value) -> Vec<(String, Vec<Change>)> {
        let desired = desired(&self.renderer.payload, spec, &self.renderer.kubernetes);
        let mut plan = Vec::new();
        for (name, failure) in &desired.refused {
            plan.push((name.clone(), vec![Change::Unknown(failure.message.clone())]));
        }
        for name in desired.wanted.iter().filter(|name| !desired.refused.contains_key(*name)) {
            let Some(component) = self.renderer.payload.components().get(name) else { continue };
            let changes = self.plan_component(component, spec).await;
            plan.push((
                name.clone(),
                changes.unwrap_or_else(|failure| vec![Change::Unknown(failure.message)]),
            ));
        }
        for name in self.inventories.names().into_iter().filter(|name| !desired.wanted.contains(name)) {
            let inventory = self.inventories.get(&name).unwrap_or_default();
            let changes = self.ends(inventory.objects).await;
            plan.push((name, changes.unwrap_or_else(|failure| vec![Change::Unknown(failure.message)])));
        }
        plan.retain(|(_, changes)| !changes.is_empty());
        plan
    }

    async fn plan_component(&self, component: &Component, spec: &Value) -> Result<Vec<Change>, Failure> {
        let hash = self.renderer.hash(component, spec);
        self.check_requirements(component, spec).await?;
        let objects = self.objects(component, spec, &hash, None).await?.objects;
        let mut changes = Vec::new();
        for object in objects.iter() {
            changes.extend(self.plan_object(component, object).await?);
        }
        let wanted: Vec<Id> = objects.iter().map(Id::of).collect();
        let inventory = self.inventories.get(&component.name).unwrap_or_default();
        let outdated = inventory
            .objects
            .into_iter()
            .filter(|entry| !wanted.iter().any(|id| id.is_same_object(&entry.id)));
        changes.extend(self.ends(outdated).await?);
        Ok(changes)
    }

    /// The changes for objects that are no longer wanted. A deleted workload stays in the inventory until its pods have ended.
    async fn ends(&self, entries: impl IntoIterator<Item = Entry>) -> Result<Vec<Change>, Failure> {
        let mut changes = Vec::new();
        for entry in entries {
            let is_adopted = entry.origin == Origin::Adopted;
            if is_adopted || self.api.get(&entry.id).await.map_err(Failure::at(&entry.id))?.is_some() {
                changes.push(end_of(entry));
            }
        }
        Ok(changes)
    }

    async fn plan_object(&self, component: &Component, object: &Value) -> Result<Option<Change>, Failure> {
        let id = Id::of(object);
        let Some(live) = self.api.get(&id).await.map_err(Failure::at(&id))? else {
            return Ok(Some(Change::Create(id)));
        };
        let kept = component.keep.iter().any(|kept| kept.kind == id.kind && kept.name == id.name);
        if kept || contains(&live, object) {
            return Ok(None);
        }
        match self.api.apply(object, true).await {
            Ok(then) => {
                let paths = differences(&live, &then);
                Ok((!paths.is_empty()).then_some(Change::Change(id, paths)))
            }
            Err(error @ ApiError::Refused { .. }) => Ok(Some(Change::Unknown(format!("{id}: {error}")))),
            Err(error) => Err(Failure::at(&id)(error)),
        }
    }
}

/// The change for an object that is no longer wanted.
fn end_of(entry: Entry) -> Change {
    match entry.origin {
        Origin::Created => Change::Delete(entry.id),
        Origin::Adopted => Change::GiveBack(entry.id),
    }
}
