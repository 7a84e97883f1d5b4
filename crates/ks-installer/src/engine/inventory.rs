//! Stores which objects ks-installer created for each component, in one Secret per component, because digests of secrets are in
//! it.
//!
//! An object is added before it is written. Thus the inventory also contains an object that was created just before a crash.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Failure, Reason};
use crate::api::{Api, Id};

/// Label of an inventory Secret; its value is the component.
const LABEL: &str = "installer.kubesphere.io/inventory";
/// Key in the Secret.
const KEY: &str = "inventory.json";

/// The objects and releases of a component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inventory {
    /// Hash of the inputs of its last rendering.
    pub hash: String,
    /// Whether all objects were applied, are ready, and outdated objects were deleted.
    pub ready: bool,
    /// Time at which a generated value of the component has to be renewed, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<i64>,
    /// Releases that are recorded in helm's format.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub releases: Vec<ReleaseName>,
    /// Its objects.
    pub objects: Vec<Entry>,
}

/// Identifies a release of helm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// An object of an inventory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Identifies the object.
    #[serde(flatten)]
    pub id: Id,
    /// Whether the object existed before.
    pub origin: Origin,
    /// UID of the object; empty until it was read.
    pub uid: String,
    /// Digest of the applied object; empty if it is not known to be applied.
    pub applied: String,
    /// Digest of the object as the API server returned it.
    pub live: String,
    /// Previous values of the fields that are written into an adopted object, packed; see `engine/adopted.rs`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub before: String,
    /// The whole previous object, packed, of an adopted object that is deleted to be replaced. It is empty if the replacement is
    /// known to exist. If the object is then missing, another client has deleted it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub former: String,
}

impl Entry {
    /// An entry of an object whose state is unknown.
    pub(super) fn new(id: Id, origin: Origin) -> Self {
        let [uid, applied, live, before, former] = [const { String::new() }; 5];
        Self { id, origin, uid, applied, live, before, former }
    }
}

/// Origin of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// ks-installer created it.
    Created,
    /// It existed before. It was as wanted, or ks-installer changed it.
    Adopted,
}

impl Inventory {
    /// The entry of an object.
    pub fn find(&self, id: &Id) -> Option<&Entry> {
        self.objects.iter().find(|entry| entry.id == *id)
    }

    /// Whether a generated value has to be renewed now.
    pub(super) fn is_due(&self) -> bool {
        self.due.is_some_and(|due| due <= super::generated::now())
    }

    pub(super) fn find_mut(&mut self, id: &Id) -> Option<&mut Entry> {
        self.objects.iter_mut().find(|entry| entry.id == *id)
    }
}

/// The inventories of all components, in memory and in the cluster.
pub struct Inventories {
    api: Arc<Api>,
    namespace: String,
    /// The inventories as stored in the cluster, with later results that can be read again.
    known: Mutex<BTreeMap<String, Inventory>>,
    /// Held while a single entry is saved, because objects of one component are written concurrently.
    saving: tokio::sync::Mutex<()>,
}

impl Inventories {
    pub(super) async fn load(api: Arc<Api>, namespace: &str) -> Result<Self, Failure> {
        let secrets =
            api.list(&Id::new("v1", "Secret", namespace, ""), &format!("labelSelector={LABEL}")).await;
        let mut known = BTreeMap::new();
        for secret in secrets.map_err(Failure::at("cannot read the inventories"))? {
            let id = Id::of(&secret);
            let inventory = read(&secret).map_err(|why| {
                let hint =
                    "it says what was installed: repair it, or delete it to have everything adopted again";
                Failure::new(Reason::Refused, format!("{id} is no inventory: {why}\nhint: {hint}"))
            })?;
            let component = secret["metadata"]["labels"][LABEL].as_str().unwrap_or_default().to_owned();
            known.insert(component, inventory);
        }
        Ok(Self {
            api,
            namespace: namespace.to_owned(),
            known: Mutex::new(known),
            saving: tokio::sync::Mutex::default(),
        })
    }

    /// The namespace of all objects that the engine creates for itself.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The inventory of a component, if it has one.
    pub fn get(&self, component: &str) -> Option<Inventory> {
        self.lock().get(component).cloned()
    }

    /// Names of all components with an inventory.
    pub fn names(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// Whether a seen object differs from the applied object. Objects without an entry are not suspect, and neither are objects
    /// of a component that is being changed.
    pub fn is_suspect(&self, component: &str, id: &Id, live: &str) -> bool {
        let known = self.lock();
        let entry = known.get(component).and_then(|inventory| inventory.find(id));
        known.get(component).is_some_and(|inventory| inventory.ready)
            // Objects that are no longer wanted but stay are not checked.
            && entry.is_some_and(|entry| !entry.live.is_empty() && entry.live != live)
    }

    /// Keeps results in memory that need not be written, because they can be read again.
    pub(super) fn note(&self, component: &str, inventory: Inventory) {
        self.lock().insert(component.to_owned(), inventory);
    }

    /// Writes an inventory, and keeps it in memory after it is written.
    pub(super) async fn save(&self, component: &str, inventory: Inventory) -> Result<(), Failure> {
        let text = serde_json::to_string(&inventory)
            .map_err(|error| Failure::new(Reason::Refused, error.to_string()))?;
        let id = self.id(component);
        let secret = json!({
            "apiVersion": id.api_version,
            "kind": id.kind,
            "metadata": { "name": id.name, "namespace": id.namespace, "labels": { LABEL: component } },
            "type": "installer.kubesphere.io/inventory",
            "data": { KEY: STANDARD.encode(text) },
        });
        // The memory contains only entries that are saved in the cluster, so a failed entry is added again by the next attempt.
        self.api.apply(&secret, false).await.map_err(Failure::at(&id))?;
        self.note(component, inventory);
        Ok(())
    }

    /// Writes one entry of an inventory, for a change that cannot be read from the cluster.
    pub(super) async fn save_entry(&self, component: &str, entry: &Entry) -> Result<(), Failure> {
        let _saving = self.saving.lock().await;
        let Some(mut inventory) = self.get(component) else { return Ok(()) };
        if let Some(known) = inventory.find_mut(&entry.id) {
            known.clone_from(entry);
        }
        self.save(component, inventory).await
    }

    /// Deletes the inventory of a component that has no objects any more.
    pub(super) async fn forget(&self, component: &str) -> Result<(), Failure> {
        let id = self.id(component);
        self.api.delete(&id, "").await.map_err(Failure::at(&id))?;
        self.lock().remove(component);
        Ok(())
    }

    fn id(&self, component: &str) -> Id {
        Id::new("v1", "Secret", &self.namespace, &format!("ks-installer-inventory-{component}"))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Inventory>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(secret: &Value) -> Result<Inventory, String> {
    let text = secret["data"][KEY].as_str().ok_or_else(|| format!("it has no {KEY}"))?;
    let bytes = STANDARD.decode(text).map_err(|error| error.to_string())?;
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inventory_of_an_older_version_is_read() {
        let text = r#"{"hash": "", "ready": false, "pods": [{"namespace": "n", "query": "labelSelector=a=b"}], "objects":
            [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "n", "name": "d", "origin": "created", "uid": "",
            "applied": "", "live": ""}]}"#;
        let read = read(&json!({"data": {KEY: STANDARD.encode(text)}})).unwrap();
        let id = Id::new("apps/v1", "Deployment", "n", "d");
        assert_eq!(read.objects, [Entry::new(id, Origin::Created)]);
    }
}
