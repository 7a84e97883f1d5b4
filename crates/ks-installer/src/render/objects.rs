//! From rendered text to objects that can be applied.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Registry, text as yaml};
use crate::api::Id;
use crate::payload::Component;

/// The label of everything that is made here: its value is the component.
pub const COMPONENT_LABEL: &str = "installer.kubesphere.io/component";

/// Groups of kinds, in the order in which they are applied. They are removed in an order of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Where others live.
    Namespace,
    /// What makes other kinds known.
    Definition,
    /// Who may do what.
    Access,
    /// What workloads read and keep.
    Config,
    /// How they are reached.
    Service,
    /// What runs.
    Workload,
    /// What makes the API server ask somebody: requests are refused when nobody answers.
    Registration,
    /// Everything else: read by controllers.
    Custom,
}

/// The group that an object belongs to.
pub fn class_of(object: &Value) -> Class {
    class_of_kind(
        object["apiVersion"].as_str().unwrap_or_default(),
        object["kind"].as_str().unwrap_or_default(),
    )
}

/// The group that a kind belongs to.
pub fn class_of_kind(api_version: &str, kind: &str) -> Class {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    match (group, kind) {
        ("", "Namespace") => Class::Namespace,
        ("apiextensions.k8s.io", _) => Class::Definition,
        ("rbac.authorization.k8s.io", _) | ("", "ServiceAccount") => Class::Access,
        ("", "Service" | "Endpoints") | ("discovery.k8s.io" | "networking.k8s.io", _) => Class::Service,
        ("apps" | "batch" | "autoscaling" | "policy", _) | ("", "Pod") => Class::Workload,
        ("admissionregistration.k8s.io" | "apiregistration.k8s.io", _) => Class::Registration,
        ("" | "storage.k8s.io" | "scheduling.k8s.io" | "node.k8s.io" | "coordination.k8s.io", _) => {
            Class::Config
        }
        _ => Class::Custom,
    }
}

/// Kinds of Kubernetes itself that are in no namespace.
const CLUSTER_WIDE: [&str; 15] = [
    "APIService",
    "CSIDriver",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "IngressClass",
    "MutatingWebhookConfiguration",
    "Namespace",
    "PersistentVolume",
    "PriorityClass",
    "RuntimeClass",
    "StorageClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
];

/// Kinds whose objects are in no namespace: those of Kubernetes, and those that definitions among `objects` make so.
pub(super) fn cluster_wide(objects: &[Value]) -> Vec<String> {
    let definitions = objects.iter().filter(|object| object["spec"]["scope"] == "Cluster");
    let own = definitions.filter_map(|object| object["spec"]["names"]["kind"].as_str());
    CLUSTER_WIDE.into_iter().chain(own).map(str::to_owned).collect()
}

/// The objects in a rendered text; lists are taken apart.
pub(super) fn read(text: &str) -> Result<Vec<Value>, String> {
    let mut objects = Vec::new();
    for document in yaml::documents(text)? {
        match document {
            Value::Null => {}
            Value::Object(mut map) if map.get("kind").is_some_and(|kind| kind == "List") => {
                let items = map.remove("items").unwrap_or_default();
                objects.extend(items.as_array().cloned().unwrap_or_default());
            }
            object => objects.push(object),
        }
    }
    for object in &objects {
        if ["apiVersion", "kind"].iter().any(|key| !object[key].is_string())
            || !object["metadata"]["name"].is_string()
        {
            // No more of it: it may hold a password.
            let text = |key: &str| object[key].as_str().unwrap_or("?").to_owned();
            let (version, kind) = (text("apiVersion"), text("kind"));
            return Err(format!(
                "this is not an object with apiVersion, kind and metadata.name: {version} {kind}"
            ));
        }
    }
    Ok(objects)
}

/// The objects that are no hooks of helm, and hooks of these kinds as if they were none.
pub(super) fn without_hooks(mut objects: Vec<Value>, kinds: &[String]) -> Vec<Value> {
    objects.retain_mut(|object| {
        let kept = kinds.iter().any(|kind| object["kind"] == kind.as_str());
        let Some(annotations) = object["metadata"]["annotations"].as_object_mut() else { return true };
        if !annotations.contains_key("helm.sh/hook") {
            return true;
        }
        annotations.retain(|key, _| !key.starts_with("helm.sh/hook"));
        kept
    });
    objects
}

/// Adds what the engine relies on: namespace, label, the user's registry, data in one form.
pub(super) fn complete(
    object: &mut Value,
    component: &Component,
    registry: &Registry,
    cluster_wide: &[String],
) -> Result<(), String> {
    let is_cluster_wide = cluster_wide.iter().any(|kind| object["kind"] == kind.as_str());
    let metadata = object["metadata"].as_object_mut().ok_or("an object without metadata")?;
    // What helm and kubectl write when nothing is known yet.
    metadata.remove("creationTimestamp");
    if is_cluster_wide {
        // Some charts name one, and the API server does not keep it.
        metadata.remove("namespace");
    } else if let Some(namespace) = &component.namespace
        && !metadata.contains_key("namespace")
    {
        metadata.insert("namespace".to_owned(), namespace.clone().into());
    }
    let labels = metadata.entry("labels").or_insert_with(|| json!({}));
    if labels.is_null() {
        *labels = json!({});
    }
    let labels = labels.as_object_mut().ok_or("metadata.labels is no map")?;
    labels.insert(COMPONENT_LABEL.to_owned(), component.name.clone().into());
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
    // The controller of these roles writes what they add up to.
    if object["aggregationRule"].is_object()
        && let Some(role) = object.as_object_mut()
    {
        role.remove("rules");
    }
    if object["kind"] == "Secret" {
        encode_string_data(object)?;
    }
    registry.rewrite_containers(object);
    Ok(())
}

/// The API server never shows `stringData` again, so that it could not be compared.
fn encode_string_data(secret: &mut Value) -> Result<(), String> {
    let Some(Value::Object(texts)) = secret.as_object_mut().and_then(|map| map.remove("stringData")) else {
        return Ok(());
    };
    if !secret["data"].is_object() {
        secret["data"] = json!({});
    }
    for (key, text) in texts {
        // The API server refuses it, too.
        let text = text.as_str().ok_or_else(|| {
            format!("stringData.{key} of the Secret {} is no text: quote it", secret["metadata"]["name"])
        })?;
        secret["data"][key] = STANDARD.encode(text).into();
    }
    Ok(())
}

/// Two sources that make the same object would undo each other.
pub(super) fn check_twice(objects: &[Value]) -> Result<(), String> {
    let mut seen = std::collections::BTreeSet::new();
    for object in objects {
        let id = Id::of(object);
        if !seen.insert(id.clone()) {
            return Err(format!("{id} is made twice"));
        }
    }
    Ok(())
}
