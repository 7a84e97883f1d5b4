//! The known objects of one watch, and their changes.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;

use jaq_json::Val;

use super::Resource;
use crate::config::{SharedFilter, WatchEvent};
use crate::context::{Identity, Item};
use crate::json::{self, Numbers};

/// The parts of each object that a binding needs. Bindings with the same needs share a view.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct View {
    /// Selects what matters of the object; without a filter, everything does.
    pub filter: Option<SharedFilter>,
    /// Whether the object itself is kept.
    pub keep_object: bool,
}

/// The objects of one watch, with what its views need of them.
#[derive(Debug, Default)]
pub(super) struct Store {
    pub(super) views: Vec<View>,
    objects: BTreeMap<Box<str>, Stored>,
    /// Counts full lists; an object that the last list did not contain is gone.
    round: u32,
}

#[derive(Debug)]
struct Stored {
    version: u64,
    round: u32,
    /// Fingerprint of the text that it was read from, without the version; `None` when it is not known.
    fingerprint: Option<NonZeroU64>,
    object: Option<Arc<[u8]>>,
    /// For each view with a filter its result.
    results: Box<[Option<Arc<[u8]>>]>,
}

/// An object as read from the API, reduced to what the views need.
#[derive(Debug)]
pub(super) struct Digest {
    /// Namespace and name, in the order of snapshots.
    key: Box<str>,
    stored: Stored,
}

/// A change that a view sees.
#[derive(Clone, Debug)]
pub(super) struct ViewChange {
    pub(super) view: usize,
    pub(super) event: WatchEvent,
    pub(super) item: Item,
    pub(super) identity: Arc<Identity>,
}

/// An object that cannot be read, or that a filter cannot deal with.
#[derive(Debug, thiserror::Error)]
#[error("{object}: {why}")]
pub(super) struct DigestError {
    pub(super) object: String,
    pub(super) why: String,
}

/// Reads an object's text and applies the filters. Filters that fail are reported and count as `null`: an object
/// that a filter cannot deal with must not hide the others.
pub(super) fn digest(
    raw: &[u8],
    resource: &Resource,
    views: &[View],
    mut report: impl FnMut(DigestError),
) -> Result<(Digest, String), DigestError> {
    let unreadable = |why: String| DigestError { object: resource.kind.clone(), why };
    let value = json::parse(raw).map_err(|error| unreadable(error.to_string()))?;
    let value = with_type(value, resource);
    let metadata = get(&value, "metadata").unwrap_or(&Val::Null);
    let text = |key: &str| get(metadata, key).and_then(text_of).unwrap_or_default();
    let (namespace, name, version) = (text("namespace"), text("name"), text("resourceVersion"));
    if name.is_empty() {
        return Err(unreadable("it has no name".to_owned()));
    }
    let results = views.iter().map(|view| {
        let result = view.filter.as_ref()?.filter_result(value.clone());
        let result = result.unwrap_or_else(|error| {
            let object = format!("{} {namespace}/{name}", resource.kind);
            report(DigestError { object, why: error.about(&resource.kind) });
            b"null".to_vec()
        });
        Some(Arc::from(result))
    });
    let results = results.collect();
    let object = if views.iter().any(|view| view.keep_object) {
        let text = json::to_vec(&value, Numbers::Exact).map_err(|error| unreadable(error.to_string()))?;
        Some(Arc::from(text))
    } else {
        None
    };
    let version_read = version_number(&version);
    let stored = Stored { version: version_read, round: 0, fingerprint: None, object, results };
    let key = key_of(&namespace, &name).into_boxed_str();
    Ok((Digest { key, stored }, version))
}

/// The key of an object: sorted by it, objects are in the order of snapshots.
pub(super) fn key_of(namespace: &str, name: &str) -> String {
    [namespace, name].join("\0")
}

/// Adds kind and version: objects of built-in kinds lack them inside a list.
fn with_type(value: Val, resource: &Resource) -> Val {
    let Val::Obj(mut map) = value else { return value };
    if !map.contains_key(&Val::utf8_str("kind")) {
        let map = Arc::make_mut(&mut map);
        map.insert(Val::utf8_str("apiVersion"), Val::utf8_str(resource.api_version()));
        map.insert(Val::utf8_str("kind"), Val::utf8_str(resource.kind.clone()));
        map.sort_unstable_keys();
    }
    Val::Obj(map)
}

fn get<'v>(value: &'v Val, key: &str) -> Option<&'v Val> {
    if let Val::Obj(map) = value { map.get(&Val::utf8_str(key.to_owned())) } else { None }
}

fn text_of(value: &Val) -> Option<String> {
    if let Val::TStr(bytes) = value { Some(String::from_utf8_lossy(bytes).into_owned()) } else { None }
}

/// Resource versions are numbers in practice, but only their equality has a meaning.
fn version_number(version: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    version.parse().unwrap_or_else(|_| {
        let mut hasher = DefaultHasher::new();
        version.hash(&mut hasher);
        hasher.finish()
    })
}

impl Digest {
    /// The same, read from a text with this fingerprint.
    pub(super) fn with_fingerprint(mut self, fingerprint: Option<NonZeroU64>) -> Self {
        self.stored.fingerprint = fingerprint;
        self
    }
}

impl Store {
    /// Begins a full list.
    pub(super) fn begin_list(&mut self) {
        self.round = self.round.wrapping_add(1);
    }

    /// Takes a new version of an object whose text is otherwise unchanged; false when it has changed, or when that is not known.
    pub(super) fn renew(&mut self, key: &str, fingerprint: NonZeroU64, version: &str) -> bool {
        let round = self.round;
        let known = self.objects.get_mut(key).filter(|known| known.fingerprint == Some(fingerprint));
        known.map(|known| (known.version, known.round) = (version_number(version), round)).is_some()
    }

    /// Takes a new state of an object and returns the changes. `Added` or `Modified` follows from the known state.
    pub(super) fn put(&mut self, digest: Digest, kind: &str) -> Vec<ViewChange> {
        let Digest { key, stored } = digest;
        let stored = Stored { round: self.round, ..stored };
        let known = self.objects.get(&key);
        let event = if known.is_some() { WatchEvent::Modified } else { WatchEvent::Added };
        let differs = |view: &usize| known.is_none_or(|known| differs(known, &stored, *view));
        let views: Vec<usize> = (0..self.views.len()).filter(differs).collect();
        let changes =
            if views.is_empty() { Vec::new() } else { self.changes(&views, event, &key, &stored, kind) };
        self.objects.insert(key, stored);
        changes
    }

    /// Takes the end of an object.
    pub(super) fn delete(&mut self, digest: Digest, kind: &str) -> Vec<ViewChange> {
        let Digest { key, stored } = digest;
        if self.objects.remove(&key).is_none() {
            return Vec::new();
        }
        let all: Vec<usize> = (0..self.views.len()).collect();
        self.changes(&all, WatchEvent::Deleted, &key, &stored, kind)
    }

    /// Ends a full list: objects that it did not contain are gone.
    pub(super) fn end_list(&mut self, kind: &str) -> Vec<ViewChange> {
        let round = self.round;
        let gone: Vec<(Box<str>, Stored)> =
            self.objects.extract_if(.., |_, stored| stored.round != round).collect();
        let all: Vec<usize> = (0..self.views.len()).collect();
        let changes =
            gone.iter().flat_map(|(key, stored)| self.changes(&all, WatchEvent::Deleted, key, stored, kind));
        changes.collect()
    }

    /// The changes that `view` would see if each object were added or deleted now.
    pub(super) fn announce(&self, view: usize, event: WatchEvent, kind: &str) -> Vec<ViewChange> {
        let one = |(key, stored)| self.changes(&[view], event, key, stored, kind);
        self.objects.iter().map(|(key, stored)| (&**key, stored)).flat_map(one).collect()
    }

    /// All objects as `view` shows them, sorted by namespace and name; each with its key.
    pub(super) fn items(&self, view: usize) -> impl Iterator<Item = (&str, Item)> {
        self.objects.iter().map(move |(key, stored)| (&**key, self.item(view, stored)))
    }

    /// Number of objects.
    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    fn item(&self, view: usize, stored: &Stored) -> Item {
        let keep = self.views[view].keep_object;
        Item {
            object: stored.object.clone().filter(|_| keep),
            filter_result: stored.results.get(view).cloned().flatten(),
        }
    }

    fn changes(
        &self,
        views: &[usize],
        event: WatchEvent,
        key: &str,
        stored: &Stored,
        kind: &str,
    ) -> Vec<ViewChange> {
        let (namespace, name) = key.split_once('\0').unwrap_or(("", key));
        let identity =
            Identity { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() };
        let identity = Arc::new(identity);
        let change = |view: &usize| ViewChange {
            view: *view,
            event,
            item: self.item(*view, stored),
            identity: identity.clone(),
        };
        views.iter().map(change).collect()
    }
}

/// Whether the part that matters to a view differs in `new`.
fn differs(known: &Stored, new: &Stored, view: usize) -> bool {
    match (&known.results[view], &new.results[view]) {
        (None, None) => known.version != new.version,
        (known, new) => known != new,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jq::Filter;

    fn resource() -> Resource {
        Resource {
            group: String::new(),
            version: "v1".into(),
            kind: "ConfigMap".into(),
            plural: "configmaps".into(),
            namespaced: true,
        }
    }

    fn view(filter: Option<&str>, keep_object: bool) -> View {
        View { filter: filter.map(|text| Arc::new(Filter::compile(text).unwrap())), keep_object }
    }

    /// A store with one object, `ns/a`, at version 1 with `data.k` = 1.
    fn store(views: &[View]) -> Store {
        let mut store = Store { views: views.to_vec(), ..Store::default() };
        store.put(object(&store, "a", 1, "1"), "ConfigMap");
        store
    }

    fn object(store: &Store, name: &str, version: u32, k: &str) -> Digest {
        let raw = format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"ns","resourceVersion":"{version}"}},"data":{{"k":"{k}"}}}}"#
        );
        digest(raw.as_bytes(), &resource(), &store.views, |error| panic!("{error}")).unwrap().0
    }

    fn show(changes: &[ViewChange]) -> Vec<(usize, &str, Option<String>)> {
        let text = |bytes: &Arc<[u8]>| String::from_utf8(bytes.to_vec()).unwrap();
        changes
            .iter()
            .map(|change| (change.view, change.event.as_str(), change.item.filter_result.as_ref().map(text)))
            .collect()
    }

    #[test]
    fn changes_are_what_matters_to_a_view() {
        for (case, version, k, expected) in [
            ("nothing_new", 1, "1", vec![]),
            ("new_version", 2, "1", vec![(0, "Modified", None)]),
            ("new_result", 2, "2", vec![(0, "Modified", None), (1, "Modified", Some("\"2\"".to_owned()))]),
        ] {
            let mut store = store(&[view(None, false), view(Some(".data.k"), false)]);
            let changes = store.put(object(&store, "a", version, k), "ConfigMap");
            assert_eq!(show(&changes), expected, "{case}");
        }
    }

    #[test]
    fn only_what_is_needed_is_kept() {
        let lean = store(&[view(None, false), view(Some(".data.k"), false)]);
        assert!(lean.objects.values().all(|stored| stored.object.is_none()));
        let full = store(&[view(None, true), view(Some(".data.k"), false)]);
        let items: Vec<Item> = full.items(0).map(|(_, item)| item).collect();
        let text = r#"{"apiVersion":"v1","data":{"k":"1"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"ns","resourceVersion":"1"}}"#;
        assert_eq!(items[0].object.as_deref(), Some(text.as_bytes()));
        assert!(full.items(1).all(|(_, item)| item.object.is_none()));
    }

    #[test]
    fn what_a_new_list_does_not_have_is_gone() {
        let mut store = store(&[view(Some(".data.k"), false)]);
        store.put(object(&store, "b", 1, "x"), "ConfigMap");
        store.begin_list();
        let changes = store.put(object(&store, "b", 1, "x"), "ConfigMap");
        assert!(changes.is_empty());
        let gone = store.end_list("ConfigMap");
        assert_eq!(show(&gone), [(0, "Deleted", Some("\"1\"".to_owned()))]);
        assert_eq!(gone[0].identity.name, "a");
        assert_eq!(store.len(), 1);
    }

    #[test]
    fn a_version_of_an_object_that_is_otherwise_the_same_changes_nothing_else() {
        let mut store = store(&[view(Some(".data.k"), false)]);
        let (one, other) = (NonZeroU64::new(1).unwrap(), NonZeroU64::new(2).unwrap());
        assert!(!store.renew("ns\0a", one, "2"), "it was read without a fingerprint");
        store.put(object(&store, "a", 2, "1").with_fingerprint(Some(one)), "ConfigMap");
        assert!(!store.renew("ns\0a", other, "3") && !store.renew("ns\0b", one, "3"));
        store.begin_list();
        assert!(store.renew("ns\0a", one, "3"));
        assert_eq!(store.objects["ns\0a"].version, 3);
        assert!(store.end_list("ConfigMap").is_empty(), "the list had it");
    }

    #[test]
    fn an_end_is_told_once() {
        let mut store = store(&[view(None, false)]);
        let end = |store: &Store| object(store, "a", 3, "1");
        assert_eq!(show(&store.delete(end(&store), "ConfigMap")), [(0, "Deleted", None)]);
        assert!(store.delete(end(&store), "ConfigMap").is_empty());
    }

    #[test]
    fn a_filter_that_fails_is_reported_and_hides_no_object() {
        let views = [view(Some("error(\"no\")"), false)];
        let raw = br#"{"metadata":{"name":"a","resourceVersion":"1"}}"#;
        let mut reports = Vec::new();
        digest(raw, &resource(), &views, |error| reports.push(error.to_string())).unwrap();
        assert_eq!(reports.len(), 1);
        assert!(reports[0].contains("ConfigMap /a"));
    }

    /// A filter's error message often contains a value.
    #[test]
    fn a_filter_that_fails_tells_nothing_of_a_secret() {
        let secret = Resource { kind: "Secret".into(), ..resource() };
        let views = [view(Some("error(.data.password)"), false)];
        let raw = br#"{"metadata":{"name":"a","resourceVersion":"1"},"data":{"password":"aHVudGVyMg=="}}"#;
        let report = |resource: &Resource| {
            let mut reports = Vec::new();
            digest(raw, resource, &views, |error| reports.push(error.to_string())).unwrap();
            reports.concat()
        };
        assert!(report(&resource()).contains("aHVudGVyMg"));
        let text = report(&secret);
        assert!(text.contains("Secret /a") && !text.contains("aHVudGVyMg"), "{text}");
    }
}
