//! Builds the status of the object: the keys that older installers wrote, and conditions.

use serde_json::{Map, Value, json};

use super::board::{State, now};
use crate::engine::Phase;
use crate::payload::Payload;

/// The status for `state`, based on the current status. Keys of other writers stay. `revision` shows the tool that deployed the
/// operator that this status is not from a previous operator.
pub(super) fn status(current: &Value, state: &State, payload: &Payload, revision: Option<&str>) -> Value {
    let mut status = if current.is_object() { current.clone() } else { json!({}) };
    let mut components = Map::new();
    for (name, (phase, since)) in &state.components {
        let key = payload.components().get(name).and_then(|component| component.status_key.as_deref());
        match phase {
            Phase::Ready => set_enabled(&mut status, key),
            Phase::Removed => {
                if let Some(key) = key {
                    take(&mut status, key);
                }
                continue;
            }
            _ => {}
        }
        components.insert(name.clone(), entry(phase, since, &current["components"][name]));
    }
    if state.is_complete() && status["core"].is_object() {
        status["core"]["version"] = payload.kubesphere().into();
    }
    status["observedGeneration"] = state.generation.into();
    status["revision"] = revision.into();
    status["phase"] = phase(state).into();
    status["components"] = components.into();
    status["plan"] = state.plan.as_ref().map_or(Value::Null, |plan| json!(plan));
    let (ready, reason, message) = summary(state);
    let unknown = format!("nothing reads {}", state.problems.unknown.join(", "));
    let spec = match (&state.problems.wrong[..], &state.problems.unknown[..]) {
        ([], []) => ("True", "AsExpected", String::new()),
        ([], _) => ("True", "UnknownKeys", unknown),
        (wrong, _) => ("False", "WrongTypes", wrong.join("; ")),
    };
    let conditions = [("Ready", ready, reason, message), ("SpecValid", spec.0, spec.1, spec.2)];
    let conditions = conditions.map(|(kind, status, reason, message)| {
        condition(
            &current["conditions"],
            &json!({ "type": kind, "status": status, "reason": reason, "message": message }),
        )
    });
    status["conditions"] = json!(conditions);
    status
}

/// A JSON merge patch that changes `from` into `to`.
pub(super) fn merge_patch(from: &Value, to: &Value) -> Option<Value> {
    if from == to {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (from, to) else { return Some(to.clone()) };
    let mut patch = Map::new();
    for (key, value) in new {
        match old.get(key) {
            Some(before) => drop(merge_patch(before, value).map(|change| patch.insert(key.clone(), change))),
            None if value.is_null() => {}
            None => drop(patch.insert(key.clone(), value.clone())),
        }
    }
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    Some(Value::Object(patch)).filter(|patch| patch.as_object().is_some_and(|patch| !patch.is_empty()))
}

fn entry(phase: &Phase, since: &str, before: &Value) -> Value {
    let (name, reason, message) = match phase {
        Phase::Waiting(why) => ("Waiting", "", why.as_str()),
        Phase::Installing => ("Installing", "", ""),
        Phase::Progressing(why) => ("Progressing", "", why.as_str()),
        Phase::Ready => ("Ready", "", ""),
        Phase::Removing => ("Removing", "", ""),
        Phase::Removed => ("Removed", "", ""),
        Phase::Failed(failure) => ("Failed", failure.reason.as_str(), failure.message.as_str()),
    };
    let mut entry = json!({ "phase": name });
    for (key, text) in [("reason", reason), ("message", message)] {
        if !text.is_empty() {
            entry[key] = text.into();
        }
    }
    // A restart does not change the phase.
    let same = before["phase"] == name && before["since"].is_string();
    entry["since"] = if same { before["since"].clone() } else { since.into() };
    entry
}

fn phase(state: &State) -> &'static str {
    let failed = state.components.values().any(|(phase, _)| matches!(phase, Phase::Failed(_)));
    match () {
        () if !state.problems.wrong.is_empty() => "Invalid",
        () if state.plan.is_some() => "Planned",
        () if failed => "Failed",
        () if state.removing => "Removing",
        () if state.is_complete() => "Ready",
        () => "Installing",
    }
}

fn summary(state: &State) -> (&'static str, &'static str, String) {
    if !state.problems.wrong.is_empty() {
        return ("False", "SpecInvalid", "the spec is not usable; nothing is changed".to_owned());
    }
    if let Some(plan) = &state.plan {
        return ("False", "Planned", format!("{} changes, see status.plan; nothing is changed", plan.len()));
    }
    let mut failures = state.components.iter().filter_map(|(name, (phase, _))| match phase {
        Phase::Failed(failure) => Some((failure.reason.as_str(), format!("{name}: {failure}"))),
        _ => None,
    });
    if let Some((reason, message)) = failures.next() {
        let more = failures.count();
        let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
        return ("False", reason, message + &more);
    }
    if state.is_complete() {
        let ready = state.components.values().filter(|(phase, _)| *phase == Phase::Ready).count();
        return ("True", "AllReady", format!("{ready} components are ready"));
    }
    ("False", "Progressing", "components are installed or removed".to_owned())
}

/// The condition. It keeps its time unless its status changes.
fn condition(current: &Value, wanted: &Value) -> Value {
    let before = current.as_array().into_iter().flatten().find(|old| old["type"] == wanted["type"]);
    let same = before.filter(|before| before["status"] == wanted["status"]);
    let mut condition = wanted.clone();
    condition["lastTransitionTime"] =
        same.map_or_else(|| now().into(), |before| before["lastTransitionTime"].clone());
    condition
}

/// Writes the entry that older installers wrote for an installed component.
fn set_enabled(status: &mut Value, key: Option<&str>) {
    let Some(key) = key else { return };
    let mut here = status;
    for part in key.split('.') {
        if !here[part].is_object() {
            here[part] = json!({});
        }
        here = &mut here[part];
    }
    if here["status"] != "enabled" {
        here["status"] = "enabled".into();
        here["enabledTime"] = now().trim_end_matches('Z').to_owned().into();
        let time = format!("{}UTC", here["enabledTime"].as_str().unwrap_or_default());
        here["enabledTime"] = time.into();
    }
}

/// Removes an entry, and then its empty parents.
fn take(status: &mut Value, key: &str) {
    let Some(map) = status.as_object_mut() else { return };
    match key.split_once('.') {
        None => drop(map.shift_remove(key)),
        Some((first, rest)) => {
            if let Some(inner) = map.get_mut(first) {
                take(inner, rest);
                if inner.as_object().is_some_and(Map::is_empty) {
                    map.shift_remove(first);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_patch_says_what_differs() {
        let from = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1]});
        let to = json!({"a": 1, "b": {"c": 9}, "e": [1, 2], "f": null});
        assert_eq!(merge_patch(&from, &to), Some(json!({"b": {"c": 9, "d": null}, "e": [1, 2]})));
        assert_eq!(merge_patch(&to, &to), None);
        assert_eq!(merge_patch(&json!({"a": {}}), &json!({"a": {}, "f": null})), None);
    }

    #[test]
    fn an_entry_goes_with_what_is_empty_around_it() {
        let mut status =
            json!({"events": {"ruler": {"status": "enabled"}}, "core": {"version": "v1", "x": {}}});
        take(&mut status, "events.ruler");
        take(&mut status, "core.x");
        assert_eq!(status, json!({"core": {"version": "v1"}}));
    }
}
