//! Handles adopted objects, which existed before their component: a removal restores their previous values and keeps them.
//!
//! The inventory contains the previous values of all written fields as a JSON merge patch. It is saved before the first write, so
//! these values survive a crash. If an object has to be deleted because it cannot be changed, the inventory contains the whole
//! object until its replacement exists.

use serde_json::{Map, Value, json};

use super::apply::may_be_replaced;
use super::inventory::{Entry, Origin, ReleaseName};
use super::packed::{pack, unpack};
use super::prune::holds_data;
use super::{Engine, Failure};
use crate::api::ApiError;
use crate::render::COMPONENT_LABEL;

/// Annotation of adopted objects that were changed. The inventory that lists them may be lost, or removed with the component.
pub(super) const ORIGIN: &str = "installer.kubesphere.io/origin";
pub(super) const ADOPTED: &str = "adopted";
/// Label of the objects that kube-apiserver creates when it starts. Without some of them, no account has any permissions.
const OF_KUBERNETES: &str = "kubernetes.io/bootstrapping";
/// API group of the roles of Kubernetes.
const RBAC: &str = "rbac.authorization.k8s.io";
/// Maps to which several owners add keys. An owner has keys, not the whole map.
const SHARED_MAPS: [&str; 4] = ["labels", "annotations", "data", "binaryData"];
/// Metadata fields that the API server writes.
const OF_THE_SERVER: [&str; 7] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
];

/// Effect of a removal on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// ks-installer created the object.
    Delete,
    /// The object existed before, or belongs to Kubernetes.
    GiveBack,
    /// ks-installer created an object with this name, but the current object has another owner.
    Leave,
}

impl Entry {
    /// What the removal of its component does to an object. `releases` are the recorded releases. An adopted object that helm has
    /// installed as part of them is deleted, as with helm.
    pub(super) fn fate(&self, live: &Value, component: &str, releases: &[ReleaseName]) -> Fate {
        let label = live["metadata"]["labels"][COMPONENT_LABEL].as_str();
        match self.origin {
            _ if label.is_some_and(|label| label != component) => Fate::Leave,
            _ if is_of_kubernetes(live) => Fate::GiveBack,
            Origin::Created if label.is_none() => Fate::Leave,
            Origin::Created => Fate::Delete,
            Origin::Adopted if is_of_release(live, releases) && !holds_data(&self.id) => Fate::Delete,
            Origin::Adopted => Fate::GiveBack,
        }
    }

    /// Records the previous values of the fields that `wanted` changes in `live`. Values that are already recorded are older and
    /// stay.
    pub(super) fn record(&mut self, live: &Value, wanted: &Value) -> Result<(), Failure> {
        let known = self.values_before()?;
        let mut former = former(&known, live, wanted);
        if has_other_role(live, wanted) {
            note_the_rest(&mut former, live, wanted);
        }
        if former != known {
            self.before = pack(&former)?;
        }
        Ok(())
    }

    fn values_before(&self) -> Result<Value, Failure> {
        if self.before.is_empty() {
            return Ok(json!({}));
        }
        let broken = |why| {
            let hint =
                "delete the key `before` of this object in the inventory: it keeps what was written into it";
            Failure::new(
                super::Reason::Refused,
                format!("the inventory has no former values of {}: {why}\nhint: {hint}", self.id),
            )
        };
        unpack(self.before.as_bytes()).map_err(broken)
    }

    /// The merge patch that restores the previous state of an object.
    fn change_back(&self, live: &Value) -> Result<Value, Failure> {
        // An object without the mark was never changed, so there is nothing to revert.
        let mut change = if is_marked(live) { self.values_before()? } else { json!({}) };
        for (map, key) in [("labels", COMPONENT_LABEL), ("annotations", ORIGIN)] {
            if !live["metadata"][map][key].is_null() && change["metadata"][map][key].is_null() {
                change["metadata"][map][key] = Value::Null;
            }
        }
        Ok(change)
    }

    /// Records the whole previous object, because it is about to be deleted.
    fn keep_former(&mut self, live: &Value) -> Result<(), Failure> {
        let mut former = live.clone();
        merge(&mut former, &self.change_back(live)?);
        if let Some(metadata) = former["metadata"].as_object_mut() {
            metadata.retain(|key, _| !OF_THE_SERVER.contains(&key.as_str()));
        }
        self.former = pack(&former)?;
        Ok(())
    }

    /// The whole previous object, if it was deleted and its replacement is not known to exist.
    pub(super) fn former(&self) -> Result<Option<Value>, Failure> {
        if self.former.is_empty() {
            return Ok(None);
        }
        let broken = |why| {
            let hint = "create the object by hand, and delete its key `former` in the inventory";
            let message = format!("the inventory has no former object of {}: {why}\nhint: {hint}", self.id);
            Failure::new(super::Reason::Refused, message)
        };
        unpack(self.former.as_bytes()).map(Some).map_err(broken)
    }
}

impl Engine {
    /// Deletes an object that is about to be replaced. An adopted object is saved first.
    pub(super) async fn delete_for_another(
        &self,
        component: &str,
        entry: &mut Entry,
        live: &Value,
    ) -> Result<(), Failure> {
        if entry.origin == Origin::Adopted {
            entry.keep_former(live)?;
            self.inventories.save_entry(component, entry).await?;
        }
        self.delete_at_once(&entry.id, live).await
    }

    /// Re-creates an adopted object that ks-installer deleted. From then on users may delete it, so its saved state is removed.
    pub(super) async fn restore(
        &self,
        component: &str,
        entry: &Entry,
        former: &Value,
    ) -> Result<(), Failure> {
        match self.api.create(former).await {
            // The namespace no longer exists.
            Err(error) if error.is_not_found() => {}
            other => drop(other.map_err(Failure::at(&entry.id))?),
        }
        self.inventories.save_entry(component, &Entry { former: String::new(), ..entry.clone() }).await
    }

    /// Reverts the changes to an adopted object.
    pub(super) async fn give_back(
        &self,
        component: &str,
        entry: &Entry,
        live: &Value,
    ) -> Result<(), Failure> {
        let (id, change) = (&entry.id, entry.change_back(live)?);
        if change.as_object().is_none_or(Map::is_empty) {
            return Ok(());
        }
        match self.api.merge(id, "", &change).await {
            Err(ApiError::NoKind(_)) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            // The role of a binding cannot be changed.
            Err(error) if may_be_replaced(id, &error) => {
                let mut entry = entry.clone();
                self.delete_for_another(component, &mut entry, live).await?;
                match entry.former()? {
                    Some(former) => self.restore(component, &entry, &former).await,
                    None => Ok(()),
                }
            }
            other => other.map(drop).map_err(Failure::at(id)),
        }
    }
}

/// Whether an object has the mark of adopted objects.
pub(super) fn is_marked(live: &Value) -> bool {
    live["metadata"]["annotations"][ORIGIN] == ADOPTED
}

/// Whether kube-apiserver creates the object. Without it, permissions are missing until kube-apiserver restarts.
pub(super) fn is_of_kubernetes(live: &Value) -> bool {
    !live["metadata"]["labels"][OF_KUBERNETES].is_null()
}

/// Whether helm installed the object as part of one of these releases.
fn is_of_release(live: &Value, releases: &[ReleaseName]) -> bool {
    let annotation = |key: &str| &live["metadata"]["annotations"][key];
    releases.iter().any(|release| {
        *annotation("meta.helm.sh/release-name") == release.name.as_str()
            && *annotation("meta.helm.sh/release-namespace") == release.namespace.as_str()
    })
}

/// The previous values in `live` of the fields that `wanted` changes; null for missing fields. Values in `known` are kept.
fn former(known: &Value, live: &Value, wanted: &Value) -> Value {
    let mut all = known.as_object().cloned().unwrap_or_default();
    for (key, wanted) in wanted.as_object().into_iter().flatten() {
        match key.as_str() {
            "apiVersion" | "kind" | "status" => {}
            "metadata" => {
                let mut metadata = all.get(key).and_then(Value::as_object).cloned().unwrap_or_default();
                for map in ["labels", "annotations"] {
                    note(&mut metadata, map, &live[key][map], &wanted[map]);
                }
                if !metadata.is_empty() {
                    all.insert(key.clone(), metadata.into());
                }
            }
            _ => note(&mut all, key, &live[key], wanted),
        }
    }
    all.into()
}

/// Whether the role of a binding changes. The API server refuses such a change, so the binding is deleted and replaced.
fn has_other_role(live: &Value, wanted: &Value) -> bool {
    let [live, wanted] = [live, wanted].map(|binding| &binding["roleRef"]);
    // The API server sets this group if the payload omits it.
    let group = |role: &Value| role["apiGroup"].as_str().unwrap_or(RBAC).to_owned();
    let differs = ["kind", "name"].iter().any(|key| live[key] != wanted[key]);
    live.is_object() && (differs || group(live) != group(wanted))
}

/// Records the subjects, labels and annotations that `wanted` does not set, because the replacement of a binding does not have
/// them.
fn note_the_rest(former: &mut Value, live: &Value, wanted: &Value) {
    let subjects = &live["subjects"];
    if wanted["subjects"].is_null() && !subjects.is_null() && former.get("subjects").is_none() {
        former["subjects"] = subjects.clone();
    }
    for map in ["labels", "annotations"] {
        for (key, value) in live["metadata"][map].as_object().into_iter().flatten() {
            let is_ours = [COMPONENT_LABEL, ORIGIN].contains(&key.as_str());
            if !is_ours && former["metadata"][map].get(key).is_none() {
                former["metadata"][map][key] = value.clone();
            }
        }
    }
}

/// Records in `former` the previous value of the field `key`, unless it is already recorded.
fn note(former: &mut Map<String, Value>, key: &str, live: &Value, wanted: &Value) {
    let inner = match former.get(key) {
        None => None,
        Some(Value::Object(inner)) => Some(inner.clone()),
        Some(_) => return,
    };
    let descends = live.is_object() || live.is_null() && SHARED_MAPS.contains(&key) || inner.is_some();
    match wanted {
        _ if live == wanted => {}
        // Such a value writes nothing.
        Value::Null => {}
        Value::Object(map) if map.is_empty() => {}
        Value::Object(map) if descends => {
            let mut inner = inner.unwrap_or_default();
            for (key, wanted) in map {
                note(&mut inner, key, &live[key], wanted);
            }
            if !inner.is_empty() {
                former.insert(key.to_owned(), inner.into());
            }
        }
        _ if inner.is_some() => {}
        _ => drop(former.insert(key.to_owned(), live.clone())),
    }
}

/// Applies a JSON merge patch (RFC 7386).
fn merge(value: &mut Value, change: &Value) {
    let Value::Object(change) = change else { return value.clone_from(change) };
    if !value.is_object() {
        *value = json!({});
    }
    let Some(map) = value.as_object_mut() else { return };
    for (key, change) in change {
        if change.is_null() {
            map.shift_remove(key);
        } else {
            merge(map.entry(key.clone()).or_insert(Value::Null), change);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Id;

    /// Removes empty maps, which the API server does not store.
    fn without_empty(value: &mut Value) {
        if let Some(map) = value.as_object_mut() {
            map.values_mut().for_each(without_empty);
            map.retain(|_, value| value.as_object().is_none_or(|inner| !inner.is_empty()));
        }
    }

    #[test]
    fn what_is_written_can_be_taken_back() {
        for (case, live, wanted) in [
            ("equal", json!({"data": {"a": "1"}}), json!({"data": {"a": "1"}})),
            ("other", json!({"data": {"a": "1", "b": "2"}}), json!({"data": {"a": "3"}})),
            ("added_to_a_map", json!({"spec": {"a": {"x": 1}}}), json!({"spec": {"a": {"y": 2}}})),
            ("added", json!({"spec": {"a": 1}}), json!({"spec": {"b": {"c": {"d": 2}}}})),
            ("no_map", json!({"metadata": {"name": "n"}}), json!({"metadata": {"labels": {"a": "b"}}})),
            ("list", json!({"rules": [{"verbs": ["get"]}, {}]}), json!({"rules": [{"verbs": ["list"]}]})),
            ("map_for_a_text", json!({"spec": {"a": "b"}}), json!({"spec": {"a": {"b": 1}}})),
            ("text_for_a_map", json!({"spec": {"a": {"b": 1}}}), json!({"spec": {"a": "b"}})),
            ("nothing_said", json!({"spec": {"a": {"b": 1}}}), json!({"spec": {"a": {}}})),
        ] {
            let former = former(&json!({}), &live, &wanted);
            let mut object = live.clone();
            merge(&mut object, &wanted);
            merge(&mut object, &former);
            without_empty(&mut object);
            assert_eq!(object, live, "{case}: {former}");
        }
    }

    #[test]
    fn keys_that_others_add_stay_when_ours_go() {
        for map in ["labels", "annotations"] {
            let former = former(&json!({}), &json!({}), &json!({"metadata": {map: {"ours": "1"}}}));
            let mut live = json!({"metadata": {map: {"ours": "1", "theirs": "2"}}});
            merge(&mut live, &former);
            assert_eq!(live, json!({"metadata": {map: {"theirs": "2"}}}));
        }
    }

    #[test]
    fn what_was_there_first_is_not_forgotten_for_what_was_written_since() {
        let live = json!({"data": {"a": "first", "b": "first"}});
        let first = former(&json!({}), &live, &json!({"data": {"a": "1"}}));
        let then = json!({"data": {"a": "1", "b": "first"}});
        let second = former(&first, &then, &json!({"data": {"a": "2", "b": "2"}}));
        assert_eq!(second, live);
    }

    #[test]
    fn a_binding_has_another_role_if_the_role_or_its_group_differs() {
        let role = |group: Value, kind: &str, name: &str| json!({"roleRef": {"apiGroup": group, "kind": kind, "name": name}});
        let defaulted = |kind: &str, name: &str| json!({"roleRef": {"kind": kind, "name": name}});
        let live = role(json!(RBAC), "Role", "r");
        for (case, live, wanted, expected) in [
            ("equal", &live, live.clone(), false),
            ("default_group", &live, defaulted("Role", "r"), false),
            ("null_group", &live, role(Value::Null, "Role", "r"), false),
            ("other_name", &live, defaulted("Role", "s"), true),
            ("other_kind", &live, defaulted("ClusterRole", "r"), true),
            ("other_group", &live, role(json!("iam.kubesphere.io"), "Role", "r"), true),
            ("no_binding", &json!({"data": {}}), json!({"data": {"a": "b"}}), false),
        ] {
            assert_eq!(has_other_role(live, &wanted), expected, "{case}");
        }
    }

    #[test]
    fn a_replaced_binding_gets_back_the_fields_that_the_payload_does_not_set() {
        let subjects = json!([{"kind": "User", "name": "u"}]);
        let live = json!({"subjects": subjects, "metadata": {"labels": {"a": "live", "b": "live", COMPONENT_LABEL: "c"},
            "annotations": {"x": "live", ORIGIN: ADOPTED}}});
        let rest = json!({"labels": {"a": "live", "b": "live"}, "annotations": {"x": "live"}});
        for (case, live, known, wanted, expected) in [
            ("nothing_known", &live, json!({}), json!({}), json!({"subjects": subjects, "metadata": rest})),
            ("subjects_set", &live, json!({}), json!({"subjects": []}), json!({"metadata": rest})),
            (
                "subjects_known",
                &live,
                json!({"subjects": null}),
                json!({}),
                json!({"subjects": null, "metadata": rest}),
            ),
            (
                "label_known",
                &live,
                json!({"metadata": {"labels": {"a": "first", "b": null}}}),
                json!({"subjects": []}),
                json!({"metadata": {"labels": {"a": "first", "b": null}, "annotations": {"x": "live"}}}),
            ),
            ("nothing_live", &json!({}), json!({}), json!({}), json!({})),
        ] {
            let mut former = known;
            note_the_rest(&mut former, live, &wanted);
            assert_eq!(former, expected, "{case}");
        }
    }

    #[test]
    fn only_what_was_made_here_is_deleted() {
        let label = |value: &str| json!({"metadata": {"labels": {COMPONENT_LABEL: value}}});
        let of_kubernetes =
            json!({"metadata": {"labels": {COMPONENT_LABEL: "c", OF_KUBERNETES: "rbac-defaults"}}});
        let of_helm = json!({"metadata": {"annotations": {"meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": "n"}}});
        let releases = [ReleaseName { namespace: "n".to_owned(), name: "r".to_owned() }];
        for (case, kind, origin, live, expected) in [
            ("made", "ConfigMap", Origin::Created, label("c"), Fate::Delete),
            ("made_again", "ConfigMap", Origin::Created, json!({}), Fate::Leave),
            ("of_another", "ConfigMap", Origin::Created, label("d"), Fate::Leave),
            ("made_as_kubernetes_does", "ClusterRole", Origin::Created, of_kubernetes, Fate::GiveBack),
            ("was_there", "ConfigMap", Origin::Adopted, label("c"), Fate::GiveBack),
            ("was_equal", "Deployment", Origin::Adopted, json!({}), Fate::GiveBack),
            ("adopted_by_another", "ConfigMap", Origin::Adopted, label("d"), Fate::Leave),
            ("of_a_release", "ConfigMap", Origin::Adopted, of_helm.clone(), Fate::Delete),
            ("secret_of_a_release", "Secret", Origin::Adopted, of_helm, Fate::GiveBack),
        ] {
            let entry = Entry::new(Id::new("v1", kind, "n", "x"), origin);
            assert_eq!(entry.fate(&live, "c", &releases), expected, "{case}");
        }
    }
}
