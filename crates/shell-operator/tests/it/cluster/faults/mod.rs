//! Faults, and that nothing is lost by them.

mod api_server;
mod end;
mod files;
mod hooks;

use crate::cluster::control_plane::ControlPlane;
use crate::cluster::operator::Operator;

const CONFIG_MAPS: &str = "configVersion: v1\nkubernetes:\n- {name: cms, apiVersion: v1, kind: ConfigMap, namespace: {nameSelector: {matchNames: [@NS@]}}, labelSelector: {matchLabels: {t: 'x'}}, jqFilter: '.data.k', keepFullObjectsInMemory: false, includeSnapshotsFrom: [cms]}";

fn config(namespace: &str) -> String {
    CONFIG_MAPS.replace("@NS@", namespace)
}

fn create(plane: &ControlPlane, namespace: &str, name: &str, k: &str) {
    plane.apply(&format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: {namespace}, labels: {{t: x}}}}, data: {{k: '{k}'}}}}"
    ));
}

/// The state that the hook `h` was given last: the sorted results of the snapshot.
fn last_state(operator: &Operator) -> String {
    state_of(operator, "h")
}

fn state_of(operator: &Operator, hook: &str) -> String {
    let contexts = operator.all_contexts(hook);
    let Some(last) = contexts.last() else { return String::new() };
    let results = last["snapshots"]["cms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["filterResult"].as_str().unwrap());
    results.collect::<Vec<_>>().join(",")
}
