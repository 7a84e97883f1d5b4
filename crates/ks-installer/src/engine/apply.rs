//! Bringing one component to what it should be.

use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use serde_json::Value;

use super::inventory::{Entry, Inventory, Origin};
use super::pass::Progress;
use super::requirements::awaited;
use super::{AT_ONCE, Engine, Failure, Reason, Rendered, adopted, workspaces};
use crate::api::{Api, ApiError, Id, contains, differences, digest};
use crate::payload::Component;
use crate::render::{COMPONENT_LABEL, Class, class_of};

/// Why objects are looked at that are wanted as before.
#[derive(Clone, Copy)]
struct Look {
    /// Somebody else has changed something.
    suspect: bool,
    /// What an earlier pass has written is not known.
    interrupted: bool,
}

/// What is to be done about an object.
struct Step<'a> {
    object: &'a Value,
    entry: Entry,
    /// Sum of what is wanted.
    wanted: String,
    /// Whether it has to be looked at before it is written.
    look: bool,
    /// Made once and then left alone.
    kept: bool,
}

impl Engine {
    /// Applies what changed, waits until it is ready, and removes what is not wanted any more. With the same inputs and
    /// nothing suspect it asks nobody.
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
        // What an earlier pass has done before it was ended is not known.
        let interrupted = !inventory.ready;
        if !unchanged {
            progress.starts();
        }
        self.check_requirements(component, spec).await?;
        let Rendered { objects, releases, due, .. } =
            self.objects(component, spec, &hash, Some(progress)).await?;
        if !unchanged && inventory.ready {
            // Killed from here on, the next run must write everything, even when the spec is the old one again.
            inventory.ready = false;
            self.inventories.save(name, inventory.clone()).await?;
        }
        self.enter(component, &mut inventory, &objects).await?;
        let look = Look { suspect, interrupted };
        let revisions = self.open_releases(component, &mut inventory, &releases, &objects).await?;
        let bring = async {
            let written = self.write(component, &mut inventory, &objects, look, progress).await?;
            // Also of what is as it was written: a look is there to find what does not work any more.
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

    /// Enters objects that are not in the inventory, before they are touched, and the former values of what is about to be
    /// written into adopted ones. Objects of another owner are refused.
    async fn enter(
        &self,
        component: &Component,
        inventory: &mut Inventory,
        objects: &[Value],
    ) -> Result<(), Failure> {
        let unknown = objects.iter().filter_map(|object| match inventory.find(&Id::of(object)) {
            None => Some((object, None)),
            // Another field of it may be written than before.
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

    /// Writes what differs, class by class. Returns whether anything was written.
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
            // Whoever calls a webhook is refused until its pods answer; custom resources that come after it would be.
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
                    // The others of the class are done first: what they are is noted.
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

    /// Keeps the saved former object in memory, too, if its replacement could not be created.
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
            // It may have come after it was entered.
            entry.origin = origin(&id, live, &component.name)?;
            if entry.origin == Origin::Adopted && !kept {
                entry.record(live, object)?;
            }
        }
        let is_replaced = !entry.former.is_empty();
        if look && live.is_none() && !is_replaced {
            // Whatever was there before is gone: this one is made here.
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
                    // What the former one did is done.
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

    /// Deletes an object and makes it again, because what changes in it cannot be changed.
    async fn replace(
        &self,
        component: &Component,
        entry: &mut Entry,
        object: &Value,
        error: ApiError,
    ) -> Result<Value, Failure> {
        let id = &entry.id.clone();
        // Another program may have created it again.
        if let Some(live) = self.api.get(id).await.map_err(Failure::at(id))? {
            origin(id, &live, &component.name)?;
            if adopted::is_of_kubernetes(&live) {
                return Err(Failure::at(id)(error));
            }
            self.delete_for_another(&component.name, entry, &live).await?;
        }
        self.api.apply(object, false).await.map_err(Failure::at(id))
    }

    /// Deletes an object of which another one takes the place, and waits until it is gone.
    pub(super) async fn delete_at_once(&self, id: &Id, live: &Value) -> Result<(), Failure> {
        let uid = uid(live);
        self.api.delete(id, &uid).await.map_err(Failure::at(id))?;
        self.wait_gone(&[(id.clone(), uid)], std::time::Duration::from_mins(1)).await
    }
}

/// What is to be done about an object, if anything.
fn step<'a>(component: &Component, inventory: &Inventory, object: &'a Value, look: Look) -> Option<Step<'a>> {
    let entry = inventory.find(&Id::of(object))?.clone();
    let kept = is_kept(component, object);
    let wanted = sum_of(component, object);
    let changed = entry.applied != wanted;
    if !changed && !look.suspect && !look.interrupted {
        return None;
    }
    // What was applied and is wanted otherwise now needs no look. What was adopted is not written without need.
    let look = look.suspect || entry.origin == Origin::Adopted || entry.applied.is_empty() || kept;
    Some(Step { object, entry, wanted, look, kept })
}

/// Whether an object is made once and then left alone.
fn is_kept(component: &Component, object: &Value) -> bool {
    component
        .keep
        .iter()
        .any(|kept| object["kind"] == kept.kind.as_str() && object["metadata"]["name"] == kept.name.as_str())
}

/// Sum of what is wanted of an object.
fn sum_of(component: &Component, object: &Value) -> String {
    if is_kept(component, object) { "kept".to_owned() } else { digest(object) }
}

/// The object as it is written.
fn marked(object: &Value, origin: Origin) -> Value {
    let mut object = object.clone();
    if origin == Origin::Adopted {
        object["metadata"]["annotations"][adopted::ORIGIN] = adopted::ADOPTED.into();
    }
    object
}

/// Whether an object that is there can be taken, and whose it is then.
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
    // A workspace only says whose a namespace is: in a KubeSphere that runs all of its own are so.
    let is_controller =
        |owner: &&Value| owner["controller"] == true && !(id.kind == "Namespace" && workspaces::owns(owner));
    let controller = owners.into_iter().flatten().find(is_controller);
    if let Some(owner) = controller {
        let text = |key: &str| owner[key].as_str().unwrap_or_default().to_owned();
        return Err(foreign(format!("{} {}", text("kind"), text("name"))));
    }
    Ok(Origin::Adopted)
}

/// Whether writing would change nothing. Where texts differ, like `1000m` and `1`, the API server is asked.
async fn is_as_wanted(api: &Api, entry: &Entry, live: &Value, object: &Value) -> Result<bool, Failure> {
    let mut object = object.clone();
    if entry.origin == Origin::Adopted && entry.applied.is_empty() {
        // A label of ours is no reason to write to what somebody else made.
        if let Some(labels) = object["metadata"]["labels"].as_object_mut() {
            labels.remove(COMPONENT_LABEL);
        }
        if contains(live, &object) {
            return Ok(true);
        }
        let then = api.apply(&object, true).await.map_err(Failure::at(&entry.id));
        return Ok(then.is_ok_and(|then| differences(live, &then).is_empty()));
    }
    // One whose label is missing only because it was adopted as it was.
    if entry.origin == Origin::Adopted && live["metadata"]["labels"][COMPONENT_LABEL].is_null() {
        let labels = object["metadata"]["labels"].as_object_mut();
        labels.map(|labels| labels.remove(COMPONENT_LABEL));
    }
    Ok(contains(live, &object))
}

fn is_webhook(id: &Id) -> bool {
    id.kind.ends_with("WebhookConfiguration")
}

/// Kinds that hold nothing that a new one would not have.
pub(super) fn may_be_replaced(id: &Id, error: &ApiError) -> bool {
    matches!(id.kind.as_str(), "Job" | "RoleBinding" | "ClusterRoleBinding")
        && matches!(error, ApiError::Refused { code: 422, .. })
}

fn uid(live: &Value) -> String {
    live["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}
