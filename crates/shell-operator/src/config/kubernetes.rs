//! Entries of `kubernetes`.

use std::sync::Arc;
use std::time::Duration;

use super::fields::Fields;
use super::schedule::{read_group, read_queue};
use super::selector::{self, FieldRequirement, LabelSelector};
use super::{MAIN_QUEUE, SharedFilter};
use crate::duration;
use crate::jq::Filter;

/// The kind of an object's change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WatchEvent {
    /// It is new.
    Added,
    /// It changed.
    Modified,
    /// It is gone.
    Deleted,
}

impl WatchEvent {
    /// Every event.
    pub const ALL: [Self; 3] = [Self::Added, Self::Modified, Self::Deleted];

    /// The event of two changes of an object, for a hook that has seen neither: a new object stays new until it is deleted.
    #[must_use]
    pub fn followed_by(self, later: Self) -> Self {
        if self == Self::Added && later == Self::Modified { Self::Added } else { later }
    }

    /// Name in v1 configurations and contexts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "Added",
            Self::Modified => "Modified",
            Self::Deleted => "Deleted",
        }
    }

    /// Name in v0 configurations and contexts.
    pub fn as_v0(self) -> &'static str {
        match self {
            Self::Added => "add",
            Self::Modified => "update",
            Self::Deleted => "delete",
        }
    }
}

/// Where to look for objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamespaceSelector {
    /// Everywhere.
    All,
    /// In these namespaces.
    Names(Vec<String>),
    /// In the namespaces that have these labels, also in those added later.
    Labels(LabelSelector),
}

/// One entry of `kubernetes` (v1) or `onKubernetesEvent` (v0).
#[derive(Clone, Debug, PartialEq)]
pub struct KubernetesBinding {
    /// Name in the binding context.
    pub name: String,
    /// `version` or `group/version`; `None` means the preferred one of the cluster.
    pub api_version: Option<String>,
    /// Kind, plural or short name, in any case.
    pub kind: String,
    /// Events that run the hook.
    pub events: Vec<WatchEvent>,
    /// Whether the hook is run with all objects at start.
    pub on_synchronization: bool,
    /// Whether events wait until the run at start has succeeded, in the queue `main`.
    pub wait_for_synchronization: bool,
    /// Whether objects are kept and given to the hook, or only the filter's results.
    pub keep_full_objects: bool,
    /// How often everything is listed again, to repair what a watch may have missed.
    pub resynchronization_period: Option<Duration>,
    /// Object names; none means all.
    pub names: Vec<String>,
    /// Labels the objects must have.
    pub label_selector: Option<LabelSelector>,
    /// Fields the objects must have.
    pub field_selector: Vec<FieldRequirement>,
    /// Namespaces of the objects.
    pub namespace: NamespaceSelector,
    /// Selects what matters of an object.
    pub filter: Option<SharedFilter>,
    /// Whether a failed run is only logged.
    pub allow_failure: bool,
    /// Kubernetes bindings whose objects the hook gets.
    pub include_snapshots_from: Vec<String>,
    /// Queue of the runs.
    pub queue: String,
    /// Group that the binding belongs to.
    pub group: Option<String>,
}

impl KubernetesBinding {
    /// A binding on everything of `kind`, with the defaults of v1.
    pub fn of_kind(kind: String) -> Self {
        Self {
            name: "kubernetes".to_owned(),
            api_version: None,
            kind,
            events: WatchEvent::ALL.to_vec(),
            on_synchronization: true,
            wait_for_synchronization: true,
            keep_full_objects: true,
            resynchronization_period: None,
            names: Vec::new(),
            label_selector: None,
            field_selector: Vec::new(),
            namespace: NamespaceSelector::All,
            filter: None,
            allow_failure: false,
            include_snapshots_from: Vec::new(),
            queue: MAIN_QUEUE.to_owned(),
            group: None,
        }
    }
}

const KEYS: [&str; 18] = [
    "name",
    "apiVersion",
    "kind",
    "executeHookOnEvent",
    "watchEvent",
    "executeHookOnSynchronization",
    "waitForSynchronization",
    "keepFullObjectsInMemory",
    "resynchronizationPeriod",
    "nameSelector",
    "labelSelector",
    "fieldSelector",
    "namespace",
    "jqFilter",
    "includeSnapshotsFrom",
    "queue",
    "group",
    "allowFailure",
];

pub(super) fn read(fields: &Fields) -> Option<KubernetesBinding> {
    fields.only(&KEYS);
    let names = read_name_selector(fields);
    let field_selector = read_field_selector(fields);
    if !names.is_empty() && field_selector.iter().any(|requirement| requirement.field == "metadata.name") {
        fields.error("fieldSelector", "metadata.name and nameSelector.matchNames are mutually exclusive");
    }
    let binding = KubernetesBinding {
        name: fields.string("name").unwrap_or("kubernetes").to_owned(),
        api_version: read_api_version(fields),
        kind: String::new(),
        events: read_events(fields),
        on_synchronization: fields.boolean("executeHookOnSynchronization", true),
        wait_for_synchronization: read_wait(fields),
        keep_full_objects: fields.boolean("keepFullObjectsInMemory", true),
        resynchronization_period: read_period(fields),
        names,
        label_selector: fields
            .get("labelSelector")
            .and_then(|value| selector::read_labels(&fields.path("labelSelector"), value, fields.problems)),
        field_selector,
        namespace: read_namespace(fields),
        filter: read_filter(fields),
        allow_failure: fields.boolean("allowFailure", false),
        include_snapshots_from: fields.filled_strings("includeSnapshotsFrom"),
        queue: read_queue(fields),
        group: read_group(fields),
    };
    let kind = fields.required("kind")?.to_owned();
    Some(KubernetesBinding { kind, ..binding })
}

fn read_api_version(fields: &Fields) -> Option<String> {
    let text = fields.string("apiVersion").filter(|text| !text.is_empty())?;
    if text.matches('/').count() > 1 || text.split('/').any(str::is_empty) {
        fields.error("apiVersion", format!("'{text}' must be 'version' or 'group/version'"));
    }
    Some(text.to_owned())
}

fn read_events(fields: &Fields) -> Vec<WatchEvent> {
    if fields.has("executeHookOnEvent") && fields.has("watchEvent") {
        fields.problems.warn(&fields.path("watchEvent"), "is ignored beside executeHookOnEvent");
    }
    let lists = ["watchEvent", "executeHookOnEvent"].map(|key| read_event_list(fields, key));
    lists.into_iter().flatten().next_back().unwrap_or_else(|| WatchEvent::ALL.to_vec())
}

fn read_event_list(fields: &Fields, key: &str) -> Option<Vec<WatchEvent>> {
    let names = fields.strings(key)?;
    let find = |name: &String| {
        let event = WatchEvent::ALL.into_iter().find(|event| event.as_str() == name);
        if event.is_none() {
            fields.error(key, format!("'{name}' is unsupported; supported are Added, Modified, Deleted"));
        }
        event
    };
    Some(names.iter().filter_map(find).collect())
}

/// `waitForSynchronization: false` has an effect only for a binding with its own queue: in `main`, nothing could continue
/// meanwhile.
fn read_wait(fields: &Fields) -> bool {
    fields.boolean("waitForSynchronization", true) || read_queue(fields) == MAIN_QUEUE
}

fn read_period(fields: &Fields) -> Option<Duration> {
    let text = fields.string("resynchronizationPeriod")?;
    let period = duration::parse(text).filter(|period| *period >= Duration::from_secs(1));
    if period.is_none() {
        let text = format!("'{text}' is not a duration of a second or more, like '5m'; it is ignored");
        fields.problems.warn(&fields.path("resynchronizationPeriod"), text);
    }
    period
}

fn read_name_selector(fields: &Fields) -> Vec<String> {
    let Some(value) = fields.get("nameSelector") else { return Vec::new() };
    read_match_names(&fields.path("nameSelector"), value, fields)
}

fn read_match_names(path: &str, value: &serde_json::Value, fields: &Fields) -> Vec<String> {
    let Some(selector) = Fields::new(path, value, fields.problems) else { return Vec::new() };
    selector.only(&["matchNames"]);
    if !selector.has("matchNames") {
        selector.error("matchNames", "is required");
    }
    let mut names = selector.strings("matchNames").unwrap_or_default();
    names.sort_unstable();
    names.dedup();
    names
}

fn read_field_selector(fields: &Fields) -> Vec<FieldRequirement> {
    let Some(value) = fields.get("fieldSelector") else { return Vec::new() };
    selector::read_fields(&fields.path("fieldSelector"), value, fields.problems)
}

fn read_namespace(fields: &Fields) -> NamespaceSelector {
    let path = fields.path("namespace");
    let Some(value) = fields.get("namespace") else { return NamespaceSelector::All };
    let Some(namespace) = Fields::new(&path, value, fields.problems) else { return NamespaceSelector::All };
    namespace.only(&["nameSelector", "labelSelector"]);
    let names = namespace
        .get("nameSelector")
        .map(|value| read_match_names(&namespace.path("nameSelector"), value, fields))
        .unwrap_or_default();
    let labels = namespace
        .get("labelSelector")
        .and_then(|value| selector::read_labels(&namespace.path("labelSelector"), value, fields.problems));
    match (labels, names.is_empty()) {
        (Some(labels), empty) => {
            if !empty {
                fields.problems.warn(&namespace.path("nameSelector"), "is ignored beside labelSelector");
            }
            NamespaceSelector::Labels(labels)
        }
        (None, true) => NamespaceSelector::All,
        (None, false) => NamespaceSelector::Names(names),
    }
}

/// `jqFilter`, compiled; an empty text means no filter.
pub(super) fn read_filter(fields: &Fields) -> Option<SharedFilter> {
    let source = fields.string("jqFilter").filter(|source| !source.is_empty())?;
    match Filter::compile(source) {
        Ok(filter) => Some(Arc::new(filter)),
        Err(error) => {
            fields.error("jqFilter", error.to_string());
            None
        }
    }
}
