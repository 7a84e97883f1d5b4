//! The form without `configVersion`, as the first releases read it.
//!
//! Differences to v1 that hooks rely on: all events when none is named, an object name and namespaces as plain
//! lists, every run in the queue `main`. Keys inside the items were never checked, so unknown ones only warn.

use serde_json::Value;

use super::fields::{Fields, Problems};
use super::kubernetes::{self, KubernetesBinding, NamespaceSelector, WatchEvent};
use super::{ConfigVersion, HookConfig, ScheduleBinding, schedule, selector, v1};

pub(super) fn read(root: &Value, problems: &Problems) -> HookConfig {
    let Some(fields) = Fields::new("", root, problems) else { return HookConfig::default() };
    fields.only(&["onStartup", "schedule", "onKubernetesEvent"]);
    HookConfig {
        version: ConfigVersion::V0,
        on_startup: fields.integer("onStartup"),
        schedules: v1::items(&fields, "schedule", read_schedule),
        kubernetes: v1::items(&fields, "onKubernetesEvent", read_event),
        ..HookConfig::default()
    }
}

fn read_schedule(fields: &Fields) -> Option<ScheduleBinding> {
    fields.prefer(&["name", "crontab", "allowFailure"]);
    schedule::read_v0(fields)
}

fn read_event(fields: &Fields) -> Option<KubernetesBinding> {
    fields.prefer(&[
        "name",
        "kind",
        "event",
        "selector",
        "objectName",
        "namespaceSelector",
        "jqFilter",
        "allowFailure",
    ]);
    let kind = fields.required("kind")?.to_owned();
    Some(KubernetesBinding {
        name: fields.string("name").unwrap_or("onKubernetesEvent").to_owned(),
        events: events(fields),
        names: fields
            .string("objectName")
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .into_iter()
            .collect(),
        label_selector: fields
            .get("selector")
            .and_then(|value| selector::read_labels(&fields.path("selector"), value, fields.problems)),
        namespace: namespaces(fields),
        filter: kubernetes::read_filter(fields),
        allow_failure: fields.boolean("allowFailure", false),
        // v0 hooks have no Synchronization: objects that exist at start are reported as `add`.
        on_synchronization: false,
        keep_full_objects: false,
        ..KubernetesBinding::of_kind(kind)
    })
}

fn events(fields: &Fields) -> Vec<WatchEvent> {
    let Some(names) = fields.strings("event") else { return WatchEvent::ALL.to_vec() };
    names
        .iter()
        .filter_map(|name| match name.as_str() {
            "add" => Some(WatchEvent::Added),
            "update" => Some(WatchEvent::Modified),
            "delete" => Some(WatchEvent::Deleted),
            other => {
                fields.error("event", format!("'{other}' is unsupported; supported are add, update, delete"));
                None
            }
        })
        .collect()
}

fn namespaces(fields: &Fields) -> NamespaceSelector {
    let path = fields.path("namespaceSelector");
    let Some(value) = fields.get("namespaceSelector") else { return NamespaceSelector::All };
    let Some(selector) = Fields::new(&path, value, fields.problems) else { return NamespaceSelector::All };
    selector.prefer(&["matchNames", "any"]);
    let names = selector.strings("matchNames");
    if selector.boolean("any", false) {
        return NamespaceSelector::All;
    }
    names.filter(|names| !names.is_empty()).map_or(NamespaceSelector::All, NamespaceSelector::Names)
}
