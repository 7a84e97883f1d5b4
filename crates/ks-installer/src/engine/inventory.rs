//! What was made, component by component: a Secret each, because it holds sums of secrets.
//!
//! An object is entered before it is touched, so that one made just before the program was killed is known, too.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Failure, Reason};
use crate::api::{Api, Id};

/// Label of an inventory; its value is the component.
const LABEL: &str = "installer.kubesphere.io/inventory";
/// Key in the Secret.
const KEY: &str = "inventory.json";

/// What was made for a component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inventory {
    /// Hash of what it was rendered from.
    pub hash: String,
    /// Whether everything was applied, ready and pruned.
    pub ready: bool,
    /// When something that was generated for it has to be renewed, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<i64>,
    /// Releases that are recorded as helm does it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub releases: Vec<ReleaseName>,
    /// Its objects.
    pub objects: Vec<Entry>,
}

/// Which release of helm.
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
    /// Which.
    #[serde(flatten)]
    pub id: Id,
    /// Whether it was there before.
    pub origin: Origin,
    /// Its identity; empty until it was seen.
    pub uid: String,
    /// Sum of what was applied; empty when that is not known to be done.
    pub applied: String,
    /// Sum of the object as the API server has it.
    pub live: String,
    /// For an adopted object, the former values of the fields that are written, packed; see `engine/adopted.rs`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub before: String,
    /// The whole former object, packed, of an adopted object that is deleted to be replaced. It is empty when the replacement is
    /// known to exist: a missing object was deleted by others then.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub former: String,
}

impl Entry {
    /// An object that nothing is known of yet.
    pub(super) fn new(id: Id, origin: Origin) -> Self {
        let [uid, applied, live, before, former] = [const { String::new() }; 5];
        Self { id, origin, uid, applied, live, before, former }
    }
}

/// Who made an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// It was made here.
    Created,
    /// It was there, and is what was wanted or was made so.
    Adopted,
}

impl Inventory {
    /// The entry of an object.
    pub fn find(&self, id: &Id) -> Option<&Entry> {
        self.objects.iter().find(|entry| entry.id == *id)
    }

    /// Whether something of it has to be renewed by now.
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
    /// As they are known, and whether the cluster has them so.
    known: Mutex<BTreeMap<String, Inventory>>,
    /// Held while a single entry is saved: objects of one component are written at the same time.
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

    /// The namespace of everything that the engine keeps for itself.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The inventory of a component, if anything was made for it.
    pub fn get(&self, component: &str) -> Option<Inventory> {
        self.lock().get(component).cloned()
    }

    /// Names of all components that have one.
    pub fn names(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// Whether an object that was seen is another one than that which was applied. Objects of nobody are none of ours, and
    /// those of a component that is being worked on are changed by that.
    pub fn is_suspect(&self, component: &str, id: &Id, live: &str) -> bool {
        let known = self.lock();
        let entry = known.get(component).and_then(|inventory| inventory.find(id));
        known.get(component).is_some_and(|inventory| inventory.ready)
            // What is not wanted any more and stays is not looked at.
            && entry.is_some_and(|entry| !entry.live.is_empty() && entry.live != live)
    }

    /// Notes what was seen and needs no writing, because it can be seen again.
    pub(super) fn note(&self, component: &str, inventory: Inventory) {
        self.lock().insert(component.to_owned(), inventory);
    }

    /// Writes an inventory, and notes it when it is written.
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
        // Only what the cluster has is known: after a failure the same is entered again.
        self.api.apply(&secret, false).await.map_err(Failure::at(&id))?;
        self.note(component, inventory);
        Ok(())
    }

    /// Writes one entry of an inventory, for a change that the cluster does not show.
    pub(super) async fn save_entry(&self, component: &str, entry: &Entry) -> Result<(), Failure> {
        let _saving = self.saving.lock().await;
        let Some(mut inventory) = self.get(component) else { return Ok(()) };
        if let Some(known) = inventory.find_mut(&entry.id) {
            known.clone_from(entry);
        }
        self.save(component, inventory).await
    }

    /// Forgets a component of which nothing is left.
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
