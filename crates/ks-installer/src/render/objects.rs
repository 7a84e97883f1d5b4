//! Converts rendered text to objects that can be applied.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Registry, text as yaml};
use crate::api::Id;
use crate::payload::Component;

/// Label of all objects that ks-installer creates; its value is the component.
pub const COMPONENT_LABEL: &str = "installer.kubesphere.io/component";

/// Classes of kinds in the order in which they are applied. `engine/removal_order.rs` defines the order of removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Namespaces.
    Namespace,
    /// Definitions of custom resources.
    Definition,
    /// Permissions.
    Access,
    /// Configuration and volumes of workloads.
    Config,
    /// Services and other network objects.
    Service,
    /// Workloads.
    Workload,
    /// Webhooks and API services. The API server refuses requests if their pods do not respond.
    Registration,
    /// All other kinds, which controllers handle.
    Custom,
}

/// The class of an object.
pub fn class_of(object: &Value) -> Class {
    class_of_kind(
        object["apiVersion"].as_str().unwrap_or_default(),
        object["kind"].as_str().unwrap_or_default(),
    )
}

/// The class of a kind.
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

/// Cluster-scoped kinds of Kubernetes itself.
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

/// Cluster-scoped kinds: of Kubernetes, and of the definitions in `objects`.
pub(super) fn cluster_wide(objects: &[Value]) -> Vec<String> {
    let definitions = objects.iter().filter(|object| object["spec"]["scope"] == "Cluster");
    let own = definitions.filter_map(|object| object["spec"]["names"]["kind"].as_str());
    CLUSTER_WIDE.into_iter().chain(own).map(str::to_owned).collect()
}

/// The objects in a rendered text, with the items of lists.
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
            // The message does not contain more of the object, because it may contain a password.
            let text = |key: &str| object[key].as_str().unwrap_or("?").to_owned();
            let (version, kind) = (text("apiVersion"), text("kind"));
            return Err(format!(
                "this is not an object with apiVersion, kind and metadata.name: {version} {kind}"
            ));
        }
    }
    Ok(objects)
}

/// The objects that are not hooks of helm. Hooks of these kinds are converted to ordinary objects.
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

/// Completes an object for the engine: namespace, label, registry of images, and data in one format.
pub(super) fn complete(
    object: &mut Value,
    component: &Component,
    registry: &Registry,
    cluster_wide: &[String],
) -> Result<(), String> {
    let is_cluster_wide = cluster_wide.iter().any(|kind| object["kind"] == kind.as_str());
    let metadata = object["metadata"].as_object_mut().ok_or("an object without metadata")?;
    // helm and kubectl write a null here.
    metadata.remove("creationTimestamp");
    if is_cluster_wide {
        // Some charts set a namespace, which the API server does not keep.
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
    // The controller of aggregated roles writes the rules.
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

/// Moves `stringData` to `data`, because the API server does not return `stringData`, so it could not be compared.
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

/// Checks that no two sources contain the same object, because they would overwrite each other.
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
