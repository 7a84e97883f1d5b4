//! Applies one component to the cluster.

use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use serde_json::Value;

use super::inventory::{Entry, Inventory, Origin};
use super::pass::Progress;
use super::requirements::awaited;
use super::{AT_ONCE, Engine, Failure, Reason, Rendered, adopted, workspaces};
use crate::api::{Api, ApiError, Id, contains, differences, digest};
use crate::payload::Component;
use crate::render::{COMPONENT_LABEL, Class, class_of};

/// Reasons to check objects whose wanted state has not changed.
#[derive(Clone, Copy)]
struct Look {
    /// Another client has changed an object.
    suspect: bool,
    /// An earlier pass was interrupted, so it is unknown what it wrote.
    interrupted: bool,
}

/// Work to do for one object.
struct Step<'a> {
    object: &'a Value,
    entry: Entry,
    /// Digest of the wanted object.
    wanted: String,
    /// Whether the object is read before it is written.
    look: bool,
    /// Created once and never changed.
    kept: bool,
}

impl Engine {
    /// Applies changed objects, waits until they are ready, and removes objects that are no longer wanted. If the inputs are
    /// unchanged and no object is suspect, it sends no request.
    pub(super) async fn converge(
        &self,
        component: &Component,
        spec: &Value,
        suspect: bool,
        progress: &Progress<'_>,
    ) -> Result<(), Failure> {
        let (name, hash) = (&component.name, self.renderer.hash(component, spec));
        let mut inventory = self.inventories.get(name).unwrap_or_default();
        let unchanged = inventory.ready && inventory.hash == hash && !inventory.is_due();
        if unchanged && !suspect {
            return Ok(());
        }
        // It is unknown what an interrupted pass has done.
        let interrupted = !inventory.ready;
        if !unchanged {
            progress.starts();
        }
        self.check_requirements(component, spec).await?;
        let Rendered { objects, releases, due, .. } =
            self.objects(component, spec, &hash, Some(progress)).await?;
        if !unchanged && inventory.ready {
            // After a crash from here on, the next run must write everything, even if the previous spec is restored.
            inventory.ready = false;
            self.inventories.save(name, inventory.clone()).await?;
        }
        self.enter(component, &mut inventory, &objects).await?;
        let look = Look { suspect, interrupted };
        let revisions = self.open_releases(component, &mut inventory, &releases, &objects).await?;
        let bring = async {
            let written = self.write(component, &mut inventory, &objects, look, progress).await?;
            // Unchanged objects are included, because a suspect component is checked for objects that no longer work.
            self.wait_ready(component, &objects, &awaited(component, spec)?, progress).await?;
            if written || !unchanged {
                self.prune(component, &mut inventory, &objects).await?;
            }
            Ok(written)
        };
        let written = match bring.await {
            Ok(written) => written,
            Err(failure) => {
                self.fail_releases(&revisions, &failure).await;
                return Err(failure);
            }
        };
        self.close_releases(&revisions).await?;
        if unchanged && !written {
            return Ok(());
        }
        self.forget_releases(&mut inventory, &releases).await?;
        self.inventories.save(name, Inventory { hash, ready: true, due, ..inventory }).await
    }

    /// Adds new objects to the inventory before they are written, with the previous values of fields that change in adopted
    /// objects. Refuses objects that belong to another owner.
    async fn enter(
        &self,
        component: &Component,
        inventory: &mut Inventory,
        objects: &[Value],
    ) -> Result<(), Failure> {
        let unknown = objects.iter().filter_map(|object| match inventory.find(&Id::of(object)) {
            None => Some((object, None)),
            // Nothing was written yet, or the object was deleted and only its pods were left: another owner may have made it since.
            Some(entry) if entry.origin == Origin::Created && entry.applied.is_empty() => {
                Some((object, None))
            }
            // The new object may change other fields than before.
            Some(entry) if entry.origin == Origin::Adopted && entry.applied != sum_of(component, object) => {
                Some((object, Some(entry.clone())))
            }
            Some(_) => None,
        });
        let unknown: Vec<(&Value, Option<Entry>)> = unknown.collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let look = |(object, known): (&Value, Option<Entry>)| {
            let (id, is_kept) = (Id::of(object), is_kept(component, object));
            let object = object.clone();
            async move {
                let live = self.api.get(&id).await.map_err(Failure::at(&id))?;
                let mut entry = match (known, &live) {
                    (Some(known), _) => known,
                    (None, None) => Entry::new(id, Origin::Created),
                    (None, Some(live)) => {
                        let origin = origin(&id, live, &component.name)?;
                        Entry::new(id, origin)
                    }
                };
                if let (Origin::Adopted, Some(live), false) = (entry.origin, &live, is_kept) {
                    entry.record(live, &object)?;
                }
                Ok::<Entry, Failure>(entry)
            }
        };
        let entries: Vec<Entry> = stream::iter(unknown).map(look).buffered(AT_ONCE).try_collect().await?;
        let mut is_changed = false;
        for entry in entries {
            if let Some(known) = inventory.find_mut(&entry.id) {
                is_changed |= *known != entry;
                *known = entry;
            } else {
                is_changed = true;
                inventory.objects.push(entry);
            }
        }
        if !is_changed {
            return Ok(());
        }
        inventory.ready = false;
        self.inventories.save(&component.name, inventory.clone()).await
    }

    /// Writes the objects that differ, one class after the other. Returns whether it wrote anything.
    async fn write(
        &self,
        component: &Component,
        inventory: &mut Inventory,
        objects: &[Value],
        look: Look,
        progress: &Progress<'_>,
    ) -> Result<bool, Failure> {
        let (mut written, mut before) = (false, 0);
        for of_class in objects.chunk_by(|a, b| class_of(a) == class_of(b)) {
            let steps: Vec<Step> =
                of_class.iter().filter_map(|object| step(component, inventory, object, look)).collect();
            // While the pods of a webhook do not respond, the API server refuses requests that call the webhook. This would
            // affect the custom resources that follow.
            if steps.iter().any(|step| is_webhook(&step.entry.id)) {
                self.wait_ready(component, &objects[..before], &[], progress).await?;
            }
            before += of_class.len();
            let mut results = stream::iter(steps)
                .map(|step| {
                    let id = step.entry.id.clone();
                    self.write_one(component, step).map(|result| (id, result))
                })
                .buffer_unordered(AT_ONCE);
            let mut failure = None;
            while let Some((id, result)) = results.next().await {
                match result {
                    Ok((entry, wrote)) => {
                        written |= wrote;
                        if let Some(old) = inventory.find_mut(&entry.id) {
                            *old = entry;
                        }
                    }
                    // The other objects of the class are completed first, so that their results are recorded.
                    Err(error) => {
                        failure = failure.or(Some(error));
                        self.keep_saved_former(&component.name, inventory, &id);
                    }
                }
            }
            drop(results);
            self.inventories.note(&component.name, inventory.clone());
            if let Some(failure) = failure {
                return Err(failure);
            }
            if of_class.first().map(class_of) == Some(Class::Definition) {
                if written {
                    self.wait_established(of_class).await?;
                }
                progress.knows_kinds();
            }
        }
        Ok(written)
    }

    /// Keeps the saved previous object also in memory, if its replacement could not be created.
    fn keep_saved_former(&self, component: &str, inventory: &mut Inventory, id: &Id) {
        let saved = self.inventories.get(component);
        let saved = saved.as_ref().and_then(|saved| saved.find(id)).filter(|saved| !saved.former.is_empty());
        if let (Some(saved), Some(entry)) = (saved, inventory.find_mut(id)) {
            entry.clone_from(saved);
        }
    }

    async fn write_one(&self, component: &Component, step: Step<'_>) -> Result<(Entry, bool), Failure> {
        let Step { object, mut entry, wanted, look, kept } = step;
        let id = entry.id.clone();
        let live = if look { self.api.get(&id).await.map_err(Failure::at(&id))? } else { None };
        if let Some(live) = &live
            && entry.uid.is_empty()
        {
            // Another client may have created the object after it was added to the inventory.
            entry.origin = origin(&id, live, &component.name)?;
            if entry.origin == Origin::Adopted && !kept {
                entry.record(live, object)?;
            }
        }
        let is_replaced = !entry.former.is_empty();
        if look && live.is_none() && !is_replaced {
            // The previous object no longer exists, so ks-installer creates this one.
            entry = Entry { origin: Origin::Created, before: String::new(), ..entry };
        }
        if let Some(live) = &live
            && (kept || is_as_wanted(&self.api, &entry, live, object).await?)
        {
            let former = String::new();
            entry = Entry { applied: wanted, live: digest(live), uid: uid(live), former, ..entry };
            return Ok((entry, is_replaced));
        }
        let live = match self.api.apply(&marked(object, entry.origin), false).await {
            Err(error) if may_be_replaced(&id, &error) => {
                if id.kind == "Job" {
                    // The work of the previous Job is done, so there is nothing to restore.
                    entry = Entry { origin: Origin::Created, before: String::new(), ..entry };
                }
                let object = marked(object, entry.origin);
                self.replace(component, &mut entry, &object, error).await
            }
            other => other.map_err(Failure::at(&id)),
        }?;
        let former = String::new();
        entry = Entry { applied: wanted, live: digest(&live), uid: uid(&live), former, ..entry };
        Ok((entry, true))
    }

    /// Deletes and re-creates an object, because the changed field is immutable.
    async fn replace(
        &self,
        component: &Component,
        entry: &mut Entry,
        object: &Value,
        error: ApiError,
    ) -> Result<Value, Failure> {
        let id = &entry.id.clone();
        // Another client may have created it again.
        if let Some(live) = self.api.get(id).await.map_err(Failure::at(id))? {
            origin(id, &live, &component.name)?;
            if adopted::is_of_kubernetes(&live) {
                return Err(Failure::at(id)(error));
            }
            self.delete_for_another(&component.name, entry, &live).await?;
        }
        self.api.apply(object, false).await.map_err(Failure::at(id))
    }

    /// Deletes an object that is about to be replaced, and waits until it is gone.
    pub(super) async fn delete_at_once(&self, id: &Id, live: &Value) -> Result<(), Failure> {
        let uid = uid(live);
        self.api.delete(id, &uid).await.map_err(Failure::at(id))?;
        self.wait_gone(&[(id.clone(), uid)], std::time::Duration::from_mins(1)).await
    }
}

/// The work to do for an object, or `None`.
fn step<'a>(component: &Component, inventory: &Inventory, object: &'a Value, look: Look) -> Option<Step<'a>> {
    let entry = inventory.find(&Id::of(object))?.clone();
    let kept = is_kept(component, object);
    let wanted = sum_of(component, object);
    let changed = entry.applied != wanted;
    if !changed && !look.suspect && !look.interrupted {
        return None;
    }
    // An object that was applied and has a new wanted state is written without reading it first. Adopted objects are not written
    // without need.
    let look = look.suspect || entry.origin == Origin::Adopted || entry.applied.is_empty() || kept;
    Some(Step { object, entry, wanted, look, kept })
}

/// Whether an object is created once and never changed.
fn is_kept(component: &Component, object: &Value) -> bool {
    component
        .keep
        .iter()
        .any(|kept| object["kind"] == kept.kind.as_str() && object["metadata"]["name"] == kept.name.as_str())
}

/// Digest of the wanted state of an object.
fn sum_of(component: &Component, object: &Value) -> String {
    if is_kept(component, object) { "kept".to_owned() } else { digest(object) }
}

/// The object as it is sent to the API server.
fn marked(object: &Value, origin: Origin) -> Value {
    let mut object = object.clone();
    if origin == Origin::Adopted {
        object["metadata"]["annotations"][adopted::ORIGIN] = adopted::ADOPTED.into();
    }
    object
}

/// Checks whether an existing object can be used, and returns its origin.
fn origin(id: &Id, live: &Value, component: &str) -> Result<Origin, Failure> {
    let metadata = &live["metadata"];
    let foreign = |owner: String| {
        let hint = "remove it from the payload, or delete the object if it is not needed";
        Failure::new(Reason::OwnedByAnother, format!("{id} belongs to {owner}\nhint: {hint}"))
    };
    match metadata["labels"][COMPONENT_LABEL].as_str() {
        Some(label) if label == component => {
            return Ok(if adopted::is_marked(live) { Origin::Adopted } else { Origin::Created });
        }
        Some(other) => return Err(foreign(format!("the component {other}"))),
        None => {}
    }
    let owners = metadata["ownerReferences"].as_array();
    // A workspace only marks its namespaces. In a running KubeSphere, all of its own namespaces are in a workspace.
    let is_controller =
        |owner: &&Value| owner["controller"] == true && !(id.kind == "Namespace" && workspaces::owns(owner));
    let controller = owners.into_iter().flatten().find(is_controller);
    if let Some(owner) = controller {
        let text = |key: &str| owner[key].as_str().unwrap_or_default().to_owned();
        return Err(foreign(format!("{} {}", text("kind"), text("name"))));
    }
    Ok(Origin::Adopted)
}

/// Whether a write would change nothing. If texts differ, such as `1000m` and `1`, a dry run on the API server decides.
async fn is_as_wanted(api: &Api, entry: &Entry, live: &Value, object: &Value) -> Result<bool, Failure> {
    let mut object = object.clone();
    if entry.origin == Origin::Adopted && entry.applied.is_empty() {
        // The component label alone is no reason to change an object of another owner.
        if let Some(labels) = object["metadata"]["labels"].as_object_mut() {
            labels.remove(COMPONENT_LABEL);
        }
        if contains(live, &object) {
            return Ok(true);
        }
        let then = api.apply(&object, true).await.map_err(Failure::at(&entry.id));
        return Ok(then.is_ok_and(|then| differences(live, &then).is_empty()));
    }
    // The label is missing only because the object was adopted unchanged.
    if entry.origin == Origin::Adopted && live["metadata"]["labels"][COMPONENT_LABEL].is_null() {
        let labels = object["metadata"]["labels"].as_object_mut();
        labels.map(|labels| labels.remove(COMPONENT_LABEL));
    }
    Ok(contains(live, &object))
}

fn is_webhook(id: &Id) -> bool {
    id.kind.ends_with("WebhookConfiguration")
}

/// Kinds whose objects contain nothing that a replacement would lack.
pub(super) fn may_be_replaced(id: &Id, error: &ApiError) -> bool {
    matches!(id.kind.as_str(), "Job" | "RoleBinding" | "ClusterRoleBinding")
        && matches!(error, ApiError::Refused { code: 422, .. })
}

fn uid(live: &Value) -> String {
    live["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}
